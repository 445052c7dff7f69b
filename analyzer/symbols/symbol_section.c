/* SPDX-License-Identifier: MIT */
#include "symbols/symbol_section.h"

#include <stdlib.h>
#include <string.h>

#include "dump/dump_symbols.h"
#include "base/grow.h"
#include "base/order.h"

void symbol_section_init(struct symbol_section *s, size_t max_bytes)
{
	*s = (struct symbol_section){ .max_bytes = max_bytes < DUMP_SYMBOLS_BYTES_MAX ? max_bytes
		                                                                      : DUMP_SYMBOLS_BYTES_MAX };
}

void symbol_section_done(struct symbol_section *s)
{
	free(s->places);
	free(s->modules);
	free(s->locations);
	free(s->strings);
	map_done(&s->string_of);
	*s = (struct symbol_section){ 0 };
}

/* Bytes of a string that may have to be stored. */
static size_t string_bytes(const char *string)
{
	return string ? strnlen(string, DUMP_SYMBOLS_STRING_MAX) + 1 : 0;
}

static bool has_room(struct symbol_section *s, size_t places, size_t modules, size_t locations, size_t strings)
{
	bool room = dump_symbols_bytes(s->place_count + places, s->module_count + modules,
	                               s->location_count + locations, s->string_bytes + strings) <= s->max_bytes;

	s->cut |= !room;
	return room && !s->failed;
}

static bool append(struct symbol_section *s, const char *string, size_t bytes)
{
	if (bytes > s->string_room - s->string_bytes) {
		size_t room = 2 * s->string_room + bytes + 4096;
		char *more = realloc(s->strings, room);
		if (!more)
			return false;
		s->strings = more;
		s->string_room = room;
	}
	memcpy(s->strings + s->string_bytes, string, bytes);
	s->string_bytes += bytes;
	return true;
}

/* Each string is there once, but for those of one hash. */
static uint32_t intern(struct symbol_section *s, const char *string)
{
	uint64_t hash = 0;

	if (!string || string_bytes(string) > DUMP_SYMBOLS_STRING_MAX)
		return DUMP_SYMBOLS_NONE;
	for (const char *c = string; *c; c++)
		hash = map_mix(hash ^ (unsigned char)*c);
	const uint32_t *known = map_find(&s->string_of, hash);
	if (known && !strcmp(s->strings + *known, string))
		return *known;
	uint32_t at = (uint32_t)s->string_bytes;
	if (!append(s, string, strlen(string) + 1) || map_put(&s->string_of, hash, at))
		s->failed = true;
	return at;
}

void symbol_section_place(struct symbol_section *s, uint64_t frame, uint16_t flags, const struct location *list,
                          size_t count)
{
	size_t strings = 0;

	for (size_t i = 0; i < count; i++)
		strings += string_bytes(list[i].function) + string_bytes(list[i].file);
	if (!count || count > DUMP_SYMBOLS_DEPTH_MAX || !has_room(s, 1, 0, count, strings))
		return;
	if (!grow_list(s->places, s->place_count)) {
		s->failed = true;
		return;
	}
	const struct dump_symbol_place place = { frame, (uint32_t)s->location_count, (uint16_t)count, flags };
	for (size_t i = 0; i < count; i++) {
		if (!grow_list(s->locations, s->location_count)) {
			s->failed = true;
			return;
		}
		uint32_t function = intern(s, list[i].function), file = intern(s, list[i].file);
		s->locations[s->location_count++] =
			(struct dump_symbol_location){ function, file, list[i].line > 0 ? list[i].line : 0 };
	}
	s->places[s->place_count++] = place;
}

void symbol_section_module(struct symbol_section *s, const struct dump_symbol_module *module, const char *reason)
{
	if (!has_room(s, 0, 1, 0, string_bytes(reason)))
		return;
	if (!grow_list(s->modules, s->module_count)) {
		s->failed = true;
		return;
	}
	s->modules[s->module_count] = *module;
	s->modules[s->module_count++].reason = intern(s, reason);
}

ORDER_BY(compare_places, struct dump_symbol_place, frame);

static char *put(char *to, const void *from, size_t bytes)
{
	if (bytes)
		memcpy(to, from, bytes);
	return to + bytes;
}

struct dump_symbols *symbol_section_build(struct symbol_section *s)
{
	const struct dump_symbols head = {
		.bytes = dump_symbols_bytes(s->place_count, s->module_count, s->location_count, s->string_bytes),
		.flags = s->cut ? DUMP_SYMBOLS_CUT : 0,
		.place_count = (uint32_t)s->place_count,
		.module_count = (uint32_t)s->module_count,
		.location_count = (uint32_t)s->location_count,
		.string_bytes = (uint32_t)s->string_bytes,
	};
	char *built = s->failed ? NULL : malloc(head.bytes);

	if (!built)
		return NULL;
	if (s->place_count)
		qsort(s->places, s->place_count, sizeof *s->places, compare_places);
	char *at = put(built, &head, sizeof head);
	at = put(at, s->places, s->place_count * sizeof *s->places);
	at = put(at, s->modules, s->module_count * sizeof *s->modules);
	at = put(at, s->locations, s->location_count * sizeof *s->locations);
	put(at, s->strings, s->string_bytes);
	return (struct dump_symbols *)(void *)built;
}
