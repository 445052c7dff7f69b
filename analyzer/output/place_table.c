/* SPDX-License-Identifier: MIT */
#include "output/place_table.h"

#include <stdlib.h>

#include "base/grow.h"

void place_table_init(struct place_table *t, const struct report *report)
{
	*t = (struct place_table){ .report = report };
}

void place_table_done(struct place_table *t)
{
	free(t->list);
	map_done(&t->entry_of);
	*t = (struct place_table){ 0 };
}

const struct place_entry *place_table_get(struct place_table *t, uint64_t place)
{
	const uint32_t *known = map_find(&t->entry_of, place);
	size_t count;

	if (known)
		return &t->list[*known];
	report_locations(t->report, place, &count);
	if (count > UINT32_MAX - t->frame_count || !grow_list(t->list, t->count) ||
	    map_put(&t->entry_of, place, (uint32_t)t->count))
		return NULL;
	t->list[t->count] = (struct place_entry){ place, t->frame_count, (uint32_t)count };
	t->frame_count += (uint32_t)count;
	return &t->list[t->count++];
}

/* A second question could have another answer, where there was no memory to keep the first one. */
const struct location *place_entry_location(const struct report *r, const struct place_entry *entry, uint32_t frame)
{
	static const struct location nothing;
	size_t count;
	const struct location *list = report_locations(r, entry->place, &count);

	return frame < count ? &list[frame] : &nothing;
}
