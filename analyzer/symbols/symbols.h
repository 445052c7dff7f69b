/* SPDX-License-Identifier: MIT */
/*
 * From places in images to functions, files and lines. What a dump has of them is used first. Each other place is
 * looked up once; each image is opened when the first of its places is asked for. Files are read by a process that can
 * do nothing else (symbol_worker.h): one that cannot be read costs names.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "debug_info/image_file.h"
#include "input/images.h"
#include "input/location.h"

struct symbols;

/* images and search must outlive the result; NULL if out of memory. Without lines, only functions are known. */
struct symbols *symbols_new(const struct images *images, const struct image_search *search, bool lines);
void symbols_free(struct symbols *symbols);

/*
 * The locations of a return address, innermost first, *count >= 1: the last one is the function that is there,
 * those before were inlined into it. Never NULL: without memory, a location that knows nothing. The function of an
 * address in no module that the dump has no name for is "[jit]".
 */
const struct location *symbols_find(struct symbols *symbols, uint64_t place, size_t *count);

/* Whether it is that of an address in no module without a name. */
bool symbols_is_unnamed(const struct location *location);

/* Whether the place is inside one of the hooked functions: a wrapper such as operator new or reallocarray. */
bool symbols_in_allocator(struct symbols *symbols, uint64_t place);

/*
 * Takes the names that a dump has: they are used first, so its files need not be here. A module that had no debug
 * information where the dump was made is looked up anew if search names another place, and its file is found. The
 * larger the dump, the more may be known. Before anything is asked of this dump; -ENOMEM.
 */
int symbols_take_dump(struct symbols *symbols, struct dump *dump, const struct image_map *map) WARN_UNUSED;

/* Says what symbols_find is about to be asked: many at once take less than one after the other. */
void symbols_want(struct symbols *symbols, const uint64_t *places, size_t count);

/* The executable segment of the program file that a place is in; not of a debug file. False: not known. */
struct symbol_segment {
	uint64_t address, bytes, offset;
};
bool symbols_segment(struct symbols *symbols, uint64_t place, struct symbol_segment *segment);

/* The file that was found for an image; NULL if none of its places was looked up. */
const struct image_found *symbols_image_file(const struct symbols *symbols, uint32_t image);
