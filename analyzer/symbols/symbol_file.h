/* SPDX-License-Identifier: MIT */
/*
 * The symbols of one image as the cache keeps them: a file of the places that reports have asked for, each with its
 * locations, and of the extents of the allocator's functions. The bytes are read as those of a stranger: nothing but
 * symbol_file_is_sound may be called before it has said yes.
 *
 * The file is the head, then range[], place[] (by offset), frame[] and the strings, each NUL-terminated.
 */
#ifndef MEMATTACH_SYMBOL_FILE_H
#define MEMATTACH_SYMBOL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache_dir.h"
#include "image_file.h"
#include "location.h"
#include "map.h"
#include "symbol_ranges.h"

#define SYMBOL_FILE_MAGIC 0x314d595354414d4dull /* "MMATSYM1" */
#define SYMBOL_FILE_VERSION 1u
#define SYMBOL_FILE_NONE UINT32_MAX /* instead of a string */

enum { SYMBOL_FILE_RANGES = 1 }; /* they are known, though there may be none */

struct symbol_file {
	struct cache_head head;
	uint64_t identity;     /* of what gave the answers */
	uint64_t alt_identity; /* of image_alt */
	uint32_t alt_path;     /* a string */
	uint32_t flags;
	uint32_t range_count;
	uint32_t place_count;
	uint32_t frame_count;
	uint32_t string_bytes;
};

enum { SYMBOL_PLACE_LINES = 1 }; /* files and lines were asked for, too */

struct symbol_place {
	uint64_t offset; /* from the load bias */
	uint32_t first;  /* frame */
	uint16_t count;  /* of frames, innermost first */
	uint16_t flags;
};

struct symbol_frame {
	uint32_t function, file; /* strings */
	int32_t line;
};

bool symbol_file_is_sound(const struct symbol_file *f, size_t bytes);

const struct symbol_range *symbol_file_ranges(const struct symbol_file *f);
const struct symbol_place *symbol_file_places(const struct symbol_file *f);
/* NULL: the place is not there. */
const struct symbol_place *symbol_file_find(const struct symbol_file *f, uint64_t offset);
/* A list of place->count, to be freed; its strings belong to the file. Without lines, only functions are told. NULL: no
 * memory. */
struct location *symbol_file_locations(const struct symbol_file *f, const struct symbol_place *place, bool lines);
/* NULL for SYMBOL_FILE_NONE. */
const char *symbol_file_string(const struct symbol_file *f, uint32_t at);

/* Makes a file. Adding cannot fail; the build does. */
struct symbol_file_builder {
	struct symbol_place *places;
	struct symbol_frame *frames;
	char *strings;
	size_t place_count, frame_count, string_bytes, string_room;
	struct map string_of; /* hash -> where it is in strings */
	size_t max_bytes;     /* of the file */
	bool failed;          /* no memory, or too large */
};

void symbol_file_builder_init(struct symbol_file_builder *b, size_t max_bytes);
void symbol_file_builder_done(struct symbol_file_builder *b);
void symbol_file_add(struct symbol_file_builder *b, uint64_t offset, bool lines, const struct location *list,
                     size_t count);
/* To be freed; NULL: it would be larger than max_bytes, or there is no memory. No place may have been added twice. */
struct symbol_file *symbol_file_build(struct symbol_file_builder *b, const struct symbol_ranges *ranges,
                                      const struct image_alt *alt, size_t *bytes);

#endif
