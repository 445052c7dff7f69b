/* SPDX-License-Identifier: MIT */
/* Bytes that claim to be the names of a dump: whether they are sound, and if so, all of them are looked at as
 * memanalyze may. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "dump/dump_symbols.h"

static inline size_t symbols_walk_string(const struct dump_symbols *s, uint32_t at)
{
	const char *string = dump_symbols_string(s, at);

	return string ? strlen(string) : 0;
}

static inline size_t symbols_walk_sound(const struct dump_symbols *s)
{
	size_t seen = 0;

	for (uint32_t i = 0; i < s->place_count; i++) {
		const struct dump_symbol_place *p = &dump_symbols_places(s)[i];
		const struct dump_symbol_location *l = dump_symbols_locations(s) + p->first;
		for (uint16_t k = 0; k < p->count; k++)
			seen += symbols_walk_string(s, l[k].function) + symbols_walk_string(s, l[k].file);
	}
	for (uint32_t i = 0; i < s->module_count; i++)
		seen += symbols_walk_string(s, dump_symbols_modules(s)[i].reason);
	return seen;
}

/* A copy of just that size, so that a sanitizer sees a byte too many. */
static inline bool symbols_walk(const void *data, size_t bytes)
{
	struct dump_symbols *s = malloc(bytes ? bytes : 1);
	volatile size_t seen = 0;

	if (!s)
		abort();
	if (bytes)
		memcpy(s, data, bytes);
	bool sound = dump_symbols_are_sound(s, bytes);
	if (sound)
		seen += symbols_walk_sound(s);
	(void)seen;
	free(s);
	return sound;
}
