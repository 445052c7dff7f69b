/* SPDX-License-Identifier: MIT */
/*
 * The frames of an output that tells functions apart, not calls: each function of a module once, whatever the line or
 * the place into which it was inlined, in the order in which they were met. Names are clean (frame_name.h).
 */
#pragma once

#include "report/folding.h"
#include "output/frame_name.h"
#include "output/place_table.h"
#include "base/string_table.h"

struct frame_entry {
	uint32_t name; /* of names */
	uint64_t place;
	const char *file; /* of the first line that was met, NULL: not known */
	int line;         /* 0: not known, or several */
};

struct frame_table {
	const struct report *report;
	struct place_table places;
	uint32_t *frame_of; /* by number of a frame of the places; */
	uint32_t framed;    /* as many as have one */
	struct string_table names;
	struct map frame_at; /* name and image -> index in list */
	struct frame_entry *list;
	uint32_t count;
	struct name_text buffer;
};

void frame_table_init(struct frame_table *table, const struct report *report);
void frame_table_done(struct frame_table *table);
/* The number of a name that stands for frames. -ENOMEM. */
int frame_table_word(struct frame_table *table, const char *word, uint32_t *frame) WARN_UNUSED;
/* The number of a frame of a folded stack. -ENOMEM. */
int frame_table_folded(struct frame_table *table, const struct folded_frame *folded, uint32_t *frame) WARN_UNUSED;
