/* SPDX-License-Identifier: MIT */
/*
 * Which samples a report is about. Stacks are chosen by names: a frame matches if one of the functions that are there
 * (inlined ones as well), its file or its module does. Samples are chosen by thread, size and age, record by record.
 * Frames are taken out of what is left. All sums, and so all intervals, are those of what is kept.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "input/images.h"
#include "base/map.h"
#include "filter/pattern.h"
#include "symbols/symbols.h"

/* All zero: nothing is filtered. */
struct filter_options {
	const char *focus;            /* stacks with a frame that matches */
	const char *ignore;           /* stacks without one */
	const char *show_from;        /* stacks with one, whose callers are taken out */
	const char *hide;             /* frames that match are taken out */
	const char *thread;           /* by name, or by number */
	uint64_t size_low, size_high; /* low <= size < high; high 0: no limit */
	uint64_t older_ns;            /* allocated so long before the time that is shown, or longer */
};

/* Whether samples are left out; whether by their stack, by what their records say. */
bool filter_any(const struct filter_options *options);
bool filter_by_stack(const struct filter_options *options);
bool filter_by_record(const struct filter_options *options);

enum filter_name { FILTER_FOCUS, FILTER_IGNORE, FILTER_SHOW_FROM, FILTER_HIDE, FILTER_THREAD, FILTER_NAMES };

struct filter {
	const struct images *images;
	struct symbols *symbols; /* NULL: only modules have names */
	struct pattern patterns[FILTER_NAMES];
	const char *thread;    /* the same as it was given: it may be a number */
	struct map matches_of; /* place -> what matches, a bit for each enum filter_name */
	struct map images_of;  /* image -> the same for its path */
	struct map shown_at;   /* place -> index in shown: of places where some of the inlined functions are hidden */
	struct filter_shown {
		struct location *list;
		size_t count;
	} * shown;
	size_t shown_count;
	bool failed; /* out of memory */
};

/* images and symbols must outlive it. -EINVAL with the reason, -ENOMEM. */
int filter_init(struct filter *filter, const struct filter_options *options, const struct images *images,
                struct symbols *symbols, struct err *e) WARN_UNUSED;
/* Whether a stack is kept; without frames, one that is not known. */
bool filter_keeps(struct filter *filter, const uint64_t *places, uint32_t count);
/* Takes out what is hidden and, with show_from, the callers; returns how many are left, and whether outer ones are
 * gone.
 */
uint32_t filter_frames(struct filter *filter, uint64_t *places, uint32_t count, bool *cut);
/* As symbols_find, without the functions that are hidden; also without symbols. */
const struct location *filter_locations(const struct filter *filter, uint64_t place, size_t *count);
bool filter_thread(struct filter *filter, uint32_t tid, const char *name);
/* Whether there was no memory, so that what was said above may be wrong. */
bool filter_failed(const struct filter *filter);
void filter_done(struct filter *filter);
