/* SPDX-License-Identifier: MIT */
/* Bytes that claim to be a file of symbols: whether they are sound, and if so, all of them are looked at as memanalyze
 * may. */
#ifndef MEMATTACH_SYMBOL_FILE_WALK_H
#define MEMATTACH_SYMBOL_FILE_WALK_H

#include <stdlib.h>
#include <string.h>

#include "symbol_file.h"

static inline size_t symbol_file_walk_place(const struct symbol_file *f, const struct symbol_place *place)
{
	struct location *list = symbol_file_locations(f, place, true);
	size_t seen = 0;

	if (!list || symbol_file_find(f, place->offset) != place)
		abort();
	for (uint32_t k = 0; k < place->count; k++)
		seen += (list[k].function ? strlen(list[k].function) : 0) + (list[k].file ? strlen(list[k].file) : 0);
	free(list);
	return seen;
}

/* A copy of just that size, so that a sanitizer sees a byte too many. */
static inline bool symbol_file_walk(const void *data, size_t bytes)
{
	struct symbol_file *f = malloc(bytes ? bytes : 1);
	volatile size_t seen = 0;

	if (!f)
		abort();
	if (bytes)
		memcpy(f, data, bytes);
	bool sound = symbol_file_is_sound(f, bytes);
	for (uint32_t i = 0; sound && i < f->place_count; i++)
		seen += symbol_file_walk_place(f, &symbol_file_places(f)[i]);
	for (uint32_t i = 0; sound && i < f->range_count; i++)
		seen += symbol_file_ranges(f)[i].end;
	if (sound && symbol_file_string(f, f->alt_path))
		seen += strlen(symbol_file_string(f, f->alt_path));
	(void)seen;
	free(f);
	return sound;
}

#endif
