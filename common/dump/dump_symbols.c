/* SPDX-License-Identifier: MIT */
#include "dump/dump_symbols.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "dump/dump_internal.h"

uint64_t dump_symbols_bytes(uint64_t places, uint64_t modules, uint64_t locations, uint64_t string_bytes)
{
	return sizeof(struct dump_symbols) + places * sizeof(struct dump_symbol_place) +
	       modules * sizeof(struct dump_symbol_module) + locations * sizeof(struct dump_symbol_location) +
	       string_bytes;
}

const struct dump_symbol_place *dump_symbols_places(const struct dump_symbols *s)
{
	return (const struct dump_symbol_place *)(const void *)(s + 1);
}

const struct dump_symbol_module *dump_symbols_modules(const struct dump_symbols *s)
{
	return (const struct dump_symbol_module *)(const void *)(dump_symbols_places(s) + s->place_count);
}

const struct dump_symbol_location *dump_symbols_locations(const struct dump_symbols *s)
{
	return (const struct dump_symbol_location *)(const void *)(dump_symbols_modules(s) + s->module_count);
}

static const char *strings_of(const struct dump_symbols *s)
{
	return (const char *)(dump_symbols_locations(s) + s->location_count);
}

const char *dump_symbols_string(const struct dump_symbols *s, uint32_t at)
{
	return at == DUMP_SYMBOLS_NONE ? NULL : strings_of(s) + at;
}

static bool is_string(const struct dump_symbols *s, uint32_t at)
{
	return at == DUMP_SYMBOLS_NONE || at < s->string_bytes;
}

static bool places_are_sound(const struct dump_symbols *s)
{
	const struct dump_symbol_place *p = dump_symbols_places(s);
	uint64_t locations = 0;

	for (uint32_t i = 0; i < s->place_count; locations += p[i++].count)
		if ((i && p[i].frame <= p[i - 1].frame) || !p[i].count || p[i].count > DUMP_SYMBOLS_DEPTH_MAX ||
		    p[i].first > s->location_count || p[i].count > s->location_count - p[i].first)
			return false;
	return locations <= s->location_count; /* none is of two places: what is made of them is bounded */
}

static bool modules_are_sound(const struct dump_symbols *s)
{
	const struct dump_symbol_module *m = dump_symbols_modules(s);

	for (uint32_t i = 0; i < s->module_count; i++)
		if (m[i].id > UINT16_MAX || m[i].source > DUMP_SYMBOL_SOURCE_DEBUG || !is_string(s, m[i].reason))
			return false;
	return true;
}

static bool locations_are_sound(const struct dump_symbols *s)
{
	const struct dump_symbol_location *l = dump_symbols_locations(s);

	for (uint32_t i = 0; i < s->location_count; i++)
		if (!is_string(s, l[i].function) || !is_string(s, l[i].file) || l[i].line < 0)
			return false;
	return true;
}

/* Each ends, soon. */
static bool strings_are_sound(const struct dump_symbols *s)
{
	const char *strings = strings_of(s), *end = strings + s->string_bytes;

	for (const char *at = strings, *next; at < end; at = next + 1) {
		size_t left = (size_t)(end - at);
		next = memchr(at, 0, left < DUMP_SYMBOLS_STRING_MAX ? left : DUMP_SYMBOLS_STRING_MAX);
		if (!next)
			return false;
	}
	return true;
}

bool dump_symbols_are_sound(const struct dump_symbols *s, size_t bytes)
{
	return bytes >= sizeof *s && s->bytes <= bytes &&
	       s->bytes == dump_symbols_bytes(s->place_count, s->module_count, s->location_count, s->string_bytes) &&
	       strings_are_sound(s) && places_are_sound(s) && modules_are_sound(s) && locations_are_sound(s);
}

static const struct dump_region *find_region(const struct dump *dump)
{
	for (uint32_t i = 0; i < dump->region_count; i++)
		if (dump->regions[i].kind == DUMP_REGION_SYMBOLS)
			return &dump->regions[i];
	return NULL;
}

/* The head says how much there is, the region and the file how much there can be. */
static size_t bytes_to_read(struct dump *dump, const struct dump_region *region)
{
	struct dump_symbols head;
	uint64_t room = dump->file_bytes - region->offset;

	if (dump_read(dump, region->offset, &head, sizeof head) != sizeof head)
		return 0;
	if (room > region->bytes)
		room = region->bytes;
	return head.bytes >= sizeof head && head.bytes <= room && head.bytes <= DUMP_SYMBOLS_BYTES_MAX ? head.bytes : 0;
}

int dump_symbols_read(struct dump *dump, struct dump_symbols **symbols)
{
	const struct dump_region *region = find_region(dump);
	size_t bytes = region ? bytes_to_read(dump, region) : 0;
	AUTO_FREE struct dump_symbols *s = bytes ? malloc(bytes) : NULL;

	*symbols = NULL;
	if (bytes && !s)
		return -ENOMEM;
	if (s && dump_read(dump, region->offset, s, bytes) == bytes && dump_symbols_are_sound(s, bytes))
		*symbols = cleanup_steal_pointer(&s);
	else if (region)
		dump_skip(dump, DUMP_SKIP_symbols);
	return 0;
}
