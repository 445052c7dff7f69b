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

#include "location.h"
#include "string_table.h"

struct python_place;
struct images;

struct python_places {
	struct string_table strings;
	struct python_place **list; /* each for itself: what was handed out stays where it is */
	uint32_t count;
	struct map place_of; /* hash -> index in list; collisions step by one */
	size_t bytes;        /* of the strings */
	char *root; /* the directory that all files have in common which belong to no package; NULL: none yet */
};

/* The place, a new one if there is none yet; line 0: not known. 0: no memory, or no room for more of them. */
uint64_t python_places_add(struct images *images, const char *function, const char *file, int line);
void python_places_done(struct python_places *places);

/* What is at a place of Python; NULL: it is none. */
const struct location *python_places_find(const struct images *images, uint64_t place);
bool python_places_have(const struct images *images, uint64_t place);

#endif
