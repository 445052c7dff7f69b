/* SPDX-License-Identifier: MIT */
/*
 * The places of the stacks that an output shows, each once, in the order in which they were met. A place has one frame
 * for each level of inlined calls; frames are numbered through all places.
 */
#pragma once

#include "report/report.h"

struct place_entry {
	uint64_t place;
	uint32_t first; /* number of its innermost frame */
	uint32_t count; /* of its frames, at least 1 */
};

struct place_table {
	const struct report *report;
	struct place_entry *list;
	size_t count;
	uint32_t frame_count;
	struct map entry_of; /* place -> index in list */
};

void place_table_init(struct place_table *table, const struct report *report);
void place_table_done(struct place_table *table);
/* Its entry, a new one if it was not met before; valid until the next call. NULL: out of memory. */
const struct place_entry *place_table_get(struct place_table *table, uint64_t place);

/* Of one frame of an entry; never NULL. */
const struct location *place_entry_location(const struct report *report, const struct place_entry *entry,
                                            uint32_t frame);
