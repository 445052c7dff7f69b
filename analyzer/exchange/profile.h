/* SPDX-License-Identifier: MIT */
/*
 * What profiles in protocol buffers have in common, pprof's and OpenTelemetry's: types of values, samples, and tables
 * of strings, functions, locations and mappings, each entry once and numbered from 1 without gaps as it is met.
 *
 * Locations are first the gaps that occur, then the places of the table. Mappings are numbered at last: the program,
 * other modules, then what is in no module.
 */
#pragma once

#include "base/string_table.h"
#include "exchange/profile_threads.h"
#include "output/frame_name.h"
#include "output/output_rows.h"
#include "output/place_table.h"

/* The last one is what readers of pprof show. */
#define PROFILE_TYPES 6
struct profile_type {
	const char *name, *unit;
	bool samples; /* how many, not what they say */
	enum report_figure figure;
};
extern const struct profile_type profile_types[PROFILE_TYPES];

static inline int64_t profile_value(const struct profile_part *part, const struct profile_type *type)
{
	return type->samples ? (int64_t)part->samples[type->figure] : part->values[type->figure];
}

/* Readers look for no file behind a name in brackets. */
#define PROFILE_NO_MODULE "[no module]"
#define PROFILE_ADDRESSES (1ull << 48) /* of a process */

struct profile_mapping {
	uint64_t start, limit, offset;
	uint64_t low, high; /* addresses of its locations, if limit is not 0 */
	uint64_t number;    /* from 1; 0: nothing is in it */
	bool functions, files, lines, inlined;
};

struct profile {
	const struct report *report;
	struct output_rows rows;
	struct string_table strings; /* number 0: "" */
	struct name_text buffer;
	struct place_table places;        /* the locations behind those of the gaps */
	uint32_t gaps[OUTPUT_GAPS];       /* numbers of the locations of those that occur, 0: it does not */
	uint32_t gap_count;               /* of them */
	struct profile_mapping *mappings; /* by image */
	uint32_t *mapped;                 /* image by number of mapping; */
	uint32_t mapped_count;            /* the last number */
	struct map function_of;           /* numbers of name and file -> number */
	uint32_t function_count;
	uint64_t *stack; /* of profile_stack */
	size_t stack_room;
	int error; /* -ENOMEM, or 0 */
};

void profile_init(struct profile *p, const struct report *report);
void profile_done(struct profile *p);

/* The number of a string, made clean. */
uint32_t profile_string(struct profile *p, const char *text);
/* The number of the location of a place. */
uint64_t profile_location(struct profile *p, uint64_t place);
/* The number of the name of a frame of an entry of the table of places. */
uint32_t profile_frame_name(struct profile *p, const struct place_entry *entry, const struct location *location);
/* The number of a function; *fresh: it was not met before. */
uint32_t profile_function(struct profile *p, uint32_t name, uint32_t file, bool *fresh);
/* Fills in p->mappings and p->mapped: after all locations are known. */
void profile_find_mappings(struct profile *p);

/* The locations of a row, the innermost first; valid until the next call. */
const uint64_t *profile_stack(struct profile *p, size_t row, size_t *count);
/* Calls put for each sample: a part of a row for each thread that is known, as long as --top is not exceeded. */
typedef void profile_put_sample(struct profile *p, size_t row, const struct profile_part *part);
void profile_samples(struct profile *p, profile_put_sample *put);

/* CLOCK_REALTIME: what was live then, or the end of the latest session. */
uint64_t profile_time_ns(const struct report *report);
/* The mean bytes between two samples, weighted by how long each interval lasted. */
double profile_interval(const struct report *report);
