/* SPDX-License-Identifier: MIT */
#include "symbol_file.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "source_lines.h"

_Static_assert(sizeof(struct symbol_file) == 56 && sizeof(struct symbol_place) == 16 &&
                       sizeof(struct symbol_frame) == 12,
               "symbol_file");

/* ---- read ---- */

const struct symbol_range *symbol_file_ranges(const struct symbol_file *f)
{
	return (const struct symbol_range *)(const void *)(f + 1);
}

const struct symbol_place *symbol_file_places(const struct symbol_file *f)
{
	return (const struct symbol_place *)(const void *)(symbol_file_ranges(f) + f->range_count);
}

static const struct symbol_frame *frames_of(const struct symbol_file *f)
{
	return (const struct symbol_frame *)(const void *)(symbol_file_places(f) + f->place_count);
}

static const char *strings_of(const struct symbol_file *f)
{
	return (const char *)(frames_of(f) + f->frame_count);
}

static size_t bytes_of(size_t ranges, size_t places, size_t frames, size_t string_bytes)
{
	return sizeof(struct symbol_file) + ranges * sizeof(struct symbol_range) +
	       places * sizeof(struct symbol_place) + frames * sizeof(struct symbol_frame) + string_bytes;
}

static bool is_string(const struct symbol_file *f, uint32_t at)
{
	return at == SYMBOL_FILE_NONE || at < f->string_bytes;
}

static bool ranges_are_sound(const struct symbol_file *f)
{
	const struct symbol_range *r = symbol_file_ranges(f);

	for (uint32_t i = 0; i < f->range_count; i++)
		if (r[i].start >= r[i].end || (i && r[i].start < r[i - 1].end))
			return false;
	return true;
}

static bool places_are_sound(const struct symbol_file *f)
{
	const struct symbol_place *p = symbol_file_places(f);

	for (uint32_t i = 0; i < f->place_count; i++)
		if ((i && p[i].offset <= p[i - 1].offset) || p[i].offset != PLACE_OFFSET(p[i].offset) || !p[i].count ||
		    p[i].count > SOURCE_DEPTH_MAX || p[i].first > f->frame_count ||
		    p[i].count > f->frame_count - p[i].first)
			return false;
	return true;
}

static bool frames_are_sound(const struct symbol_file *f)
{
	const struct symbol_frame *frame = frames_of(f);

	for (uint32_t i = 0; i < f->frame_count; i++)
		if (!is_string(f, frame[i].function) || !is_string(f, frame[i].file))
			return false;
	return true;
}

bool symbol_file_is_sound(const struct symbol_file *f, size_t bytes)
{
	return bytes >= sizeof *f &&
	       bytes == bytes_of(f->range_count, f->place_count, f->frame_count, f->string_bytes) &&
	       (!f->string_bytes || !strings_of(f)[f->string_bytes - 1]) && is_string(f, f->alt_path) &&
	       ranges_are_sound(f) && places_are_sound(f) && frames_are_sound(f);
}

const char *symbol_file_string(const struct symbol_file *f, uint32_t at)
{
	return at == SYMBOL_FILE_NONE ? NULL : strings_of(f) + at;
}

const struct symbol_place *symbol_file_find(const struct symbol_file *f, uint64_t offset)
{
	const struct symbol_place *places = symbol_file_places(f);
	size_t low = 0;
	size_t high = f->place_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (places[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low < f->place_count && places[low].offset == offset ? &places[low] : NULL;
}

struct location *symbol_file_locations(const struct symbol_file *f, const struct symbol_place *place, bool lines)
{
	const struct symbol_frame *frame = frames_of(f) + place->first;
	struct location *list = calloc(place->count, sizeof *list);

	for (uint16_t i = 0; list && i < place->count; i++)
		list[i] = (struct location){ .function = symbol_file_string(f, frame[i].function),
			                     .file = lines ? symbol_file_string(f, frame[i].file) : NULL,
			                     .line = lines ? frame[i].line : 0,
			                     .inlined = i + 1 < place->count };
	return list;
}

/* ---- make ---- */

void symbol_file_builder_init(struct symbol_file_builder *b, size_t max_bytes)
{
	*b = (struct symbol_file_builder){ .max_bytes = max_bytes };
}

void symbol_file_builder_done(struct symbol_file_builder *b)
{
	free(b->places);
	free(b->frames);
	free(b->strings);
	map_done(&b->string_of);
	*b = (struct symbol_file_builder){ 0 };
}

static bool append(struct symbol_file_builder *b, const char *string, size_t bytes)
{
	if (bytes > b->max_bytes - b->string_bytes)
		return false;
	if (bytes > b->string_room - b->string_bytes) {
		size_t room = 2 * b->string_room + bytes + 4096;
		char *more = realloc(b->strings, room);
		if (!more)
			return false;
		b->strings = more;
		b->string_room = room;
	}
	memcpy(b->strings + b->string_bytes, string, bytes);
	b->string_bytes += bytes;
	return true;
}

/* Each string is there once, but for those of one hash. */
static uint32_t intern(struct symbol_file_builder *b, const char *string)
{
	if (!string || b->failed)
		return SYMBOL_FILE_NONE;
	size_t bytes = strlen(string) + 1;
	uint64_t hash = cache_hash(string, bytes, 0);
	const uint32_t *known = map_find(&b->string_of, hash);
	if (known && !strcmp(b->strings + *known, string))
		return *known;
	uint32_t at = (uint32_t)b->string_bytes;
	b->failed = !append(b, string, bytes) || map_put(&b->string_of, hash, at);
	return at;
}

void symbol_file_add(struct symbol_file_builder *b, uint64_t offset, bool lines, const struct location *list,
                     size_t count)
{
	if (b->failed || count > SOURCE_DEPTH_MAX ||
	    bytes_of(0, b->place_count + 1, b->frame_count + count, b->string_bytes) > b->max_bytes ||
	    !grow_list(b->places, b->place_count)) {
		b->failed = true;
		return;
	}
	b->places[b->place_count++] = (struct symbol_place){ .offset = offset,
		                                             .first = (uint32_t)b->frame_count,
		                                             .count = (uint16_t)count,
		                                             .flags = lines ? SYMBOL_PLACE_LINES : 0 };
	for (size_t i = 0; i < count; i++) {
		if (!grow_list(b->frames, b->frame_count)) {
			b->failed = true;
			return;
		}
		b->frames[b->frame_count++] =
			(struct symbol_frame){ intern(b, list[i].function), intern(b, list[i].file), list[i].line };
	}
}

static int compare_places(const void *a, const void *b)
{
	const struct symbol_place *x = a;
	const struct symbol_place *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

static char *put(char *to, const void *from, size_t bytes)
{
	if (bytes)
		memcpy(to, from, bytes);
	return to + bytes;
}

struct symbol_file *symbol_file_build(struct symbol_file_builder *b, const struct symbol_ranges *ranges,
                                      const struct image_alt *alt, size_t *bytes)
{
	uint32_t alt_path = intern(b, alt->path);
	struct symbol_file head = { .alt_identity = alt->identity,
		                    .alt_path = alt_path,
		                    .flags = ranges->known ? SYMBOL_FILE_RANGES : 0,
		                    .range_count = (uint32_t)ranges->count,
		                    .place_count = (uint32_t)b->place_count,
		                    .frame_count = (uint32_t)b->frame_count,
		                    .string_bytes = (uint32_t)b->string_bytes };
	size_t all = bytes_of(ranges->count, b->place_count, b->frame_count, b->string_bytes);
	char *file = b->failed || all > b->max_bytes ? NULL : malloc(all);

	if (!file)
		return NULL;
	if (b->place_count)
		qsort(b->places, b->place_count, sizeof *b->places, compare_places);
	char *at = put(file, &head, sizeof head);
	at = put(at, ranges->list, ranges->count * sizeof *ranges->list);
	at = put(at, b->places, b->place_count * sizeof *b->places);
	at = put(at, b->frames, b->frame_count * sizeof *b->frames);
	put(at, b->strings, b->string_bytes);
	*bytes = all;
	return (struct symbol_file *)(void *)file;
}
