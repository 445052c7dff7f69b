/* SPDX-License-Identifier: MIT */
/*
 * Lines of Python and Java as places (images.h), so that rows, filters and all forms of output have them like any
 * other. A place is a function, its file and a line: the same in every process, however often the code was loaded or
 * compiled. The image of such a place is the Python module or the Java package, and its offset a number in this table.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "input/location.h"
#include "base/string_table.h"

enum image_language {
	IMAGE_NATIVE,
	IMAGE_PYTHON,
	IMAGE_JAVA, /* a package */
};

struct images;
struct python_file;
struct python_path;
struct source_place;

struct source_places {
	struct string_table strings;
	struct source_place **list; /* each for itself: what was handed out stays where it is */
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
 * process that has the file. A file of Python is named once: where several dumps have it, by the path of the first.
 */
uint64_t source_places_add_python(struct images *images, const struct python_path *path, const char *function,
                                  const char *file, int line);
uint64_t source_places_add_java(struct images *images, const char *package, const char *function, const char *file,
                                int line);
void source_places_done(struct source_places *places);

/* A file as people know it, of Python or not: below its entry of path, or the directory that those in none have in
 * common; else all of it. */
const char *source_places_short(const struct source_places *places, const char *file);

enum image_language source_places_language(const struct images *images, uint64_t place);
/* What is at such a place; NULL: it is a native one. */
const struct location *source_places_find(const struct images *images, uint64_t place);
/* The package of a place of the JDK, or of Netty's own allocator, whose lines say little; NULL: it is none. */
const char *source_places_jdk(const struct images *images, uint64_t place);
bool source_places_have(const struct images *images, uint64_t place);
