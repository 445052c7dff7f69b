/* SPDX-License-Identifier: MIT */
/* The tables of a profile (report_pprof.h): locations are numbered as samples name them, all else when they are put. */
#ifndef MEMATTACH_PPROF_TABLES_H
#define MEMATTACH_PPROF_TABLES_H

#include "output/frame_name.h"
#include "exchange/gzip.h"
#include "output/output_rows.h"
#include "output/place_table.h"
#include "exchange/proto.h"
#include "base/string_table.h"

/* Fields of the message Profile. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_DROP_FRAMES = 7,
	PROFILE_TIME = 9,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_TYPE = 14,
};

struct pprof_mapping {
	uint64_t start, limit, offset;
	uint64_t low, high; /* addresses of its locations, if limit is not 0 */
	uint64_t number;    /* from 1; 0: nothing is in it */
	bool functions, files, lines, inlined;
};

struct pprof {
	const struct report *report;
	struct output_rows rows;
	struct gzip gzip;
	struct proto message, part, packed;
	struct string_table strings;
	struct name_text buffer;
	struct place_table places;  /* the locations behind those of the gaps */
	uint32_t gaps[OUTPUT_GAPS]; /* numbers of the locations of those that occur, 0: it does not */
	uint32_t gap_count;
	struct pprof_mapping *mappings; /* by image */
	struct map function_of;         /* numbers of name and file -> number */
	uint32_t function_count;
	size_t more; /* samples than rows may be put */
	int error;   /* -ENOMEM, or 0 */
};

/* Puts p->message into a field of the profile, and empties it. */
void pprof_put(struct pprof *p, unsigned field);
/* The number of a string, made clean. */
uint32_t pprof_string(struct pprof *p, const char *text);
/* Finds out which gaps there are. */
void pprof_init_gaps(struct pprof *p);
/* The number of the location of a place. */
uint64_t pprof_location(struct pprof *p, uint64_t place);
/* Mappings, locations, functions and strings: last of all. */
void pprof_put_tables(struct pprof *p);

#endif
