/* SPDX-License-Identifier: MIT */
/*
 * Lines of Python as places (images.h), so that rows, filters and all forms of output have them like any other. A place
 * is a function, its file and a line: the same in every process, however often the code was loaded. The image of such a
 * place is the Python module, and its offset a number in this table.
 */
#ifndef MEMATTACH_PYTHON_PLACES_H
#define MEMATTACH_PYTHON_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "input/location.h"
#include "base/string_table.h"

struct images;
struct python_file;
struct python_path;
struct python_place;

struct python_places {
	struct string_table strings;
	struct python_place **list; /* each for itself: what was handed out stays where it is */
	uint32_t count;
	struct map place_of; /* hash -> index in list; collisions step by one */
	size_t bytes;        /* of the strings */
	struct map file_of;  /* string -> index in files */
	struct python_file *files;
	uint32_t file_count;
	char *root; /* the directory that all files have in common which lie in no entry of path; NULL: none yet */
};

/*
 * The place, a new one if there is none yet; line 0: not known. 0: no memory, or no room for more of them. path: of the
 * process that has the file. A file is named once: where several dumps have it, by the path of the first.
 */
uint64_t python_places_add(struct images *images, const struct python_path *path, const char *function,
                           const char *file, int line);
void python_places_done(struct python_places *places);

/* A file as people know it, of Python or not: below its entry of path, or the directory that those in none have in
 * common; else all of it. */
const char *python_places_short(const struct python_places *places, const char *file);

/* What is at a place of Python; NULL: it is none. */
const struct location *python_places_find(const struct images *images, uint64_t place);
bool python_places_have(const struct images *images, uint64_t place);

#endif
