/* SPDX-License-Identifier: MIT */
#include "output/frame_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

void frame_table_init(struct frame_table *t, const struct report *report)
{
	*t = (struct frame_table){ .report = report };
	place_table_init(&t->places, report);
}

void frame_table_done(struct frame_table *t)
{
	place_table_done(&t->places);
	string_table_done(&t->names);
	map_done(&t->frame_at);
	frame_name_done(&t->buffer);
	free(t->frame_of);
	free(t->list);
	*t = (struct frame_table){ 0 };
}

/* The line of a function that was met at several is none. */
static void meet(struct frame_entry *entry, const char *file, int line)
{
	if (entry->line != line || (file && entry->file && strcmp(entry->file, file)))
		entry->line = 0;
}

/* The same function at another line, or inlined somewhere, is one frame. */
static int get_frame(struct frame_table *t, const char *name, uint64_t place, const struct location *l, uint32_t *frame)
{
	uint32_t number;
	int s = name ? string_table_add(&t->names, name, &number) : -ENOMEM;

	if (s)
		return s;
	uint64_t key = (uint64_t)number << 16 | PLACE_IMAGE(place);
	const uint32_t *known = map_find(&t->frame_at, key);
	if (known) {
		meet(&t->list[*known], l->file, l->line);
		*frame = *known;
		return 0;
	}
	if (!grow_list(t->list, t->count) || map_put(&t->frame_at, key, t->count))
		return -ENOMEM;
	t->list[t->count] = (struct frame_entry){ number, place, l->file, l->line };
	*frame = t->count++;
	return 0;
}

/* The frames of a place: frame_of[entry->first] is the innermost one, entry->count follow. */
static int add_place(struct frame_table *t, uint64_t place, struct place_entry *entry)
{
	const struct place_entry *known = place_table_get(&t->places, place);

	if (!known)
		return -ENOMEM;
	*entry = *known;
	for (; t->framed < t->places.frame_count; t->framed++) {
		const struct location *l = place_entry_location(t->report, entry, t->framed - entry->first);
		uint32_t frame;
		int s = get_frame(t, frame_name_text(&t->buffer, t->report, place, l), place, l, &frame);
		if (s)
			return s;
		if (!grow_list(t->frame_of, t->framed))
			return -ENOMEM;
		t->frame_of[t->framed] = frame;
	}
	return 0;
}

int frame_table_word(struct frame_table *t, const char *word, uint32_t *frame)
{
	static const struct location nothing;

	return get_frame(t, word, 0, &nothing, frame);
}

int frame_table_folded(struct frame_table *t, const struct folded_frame *f, uint32_t *frame)
{
	struct place_entry entry;
	size_t n;

	if (f->name[0])
		return frame_table_word(t, f->name, frame);
	int s = add_place(t, f->place, &entry);
	if (!s)
		*frame = t->frame_of[entry.first + (f->location - report_locations(t->report, f->place, &n))];
	return s;
}
