/* SPDX-License-Identifier: MIT */
/*
 * The sum of the resident memory: by how much it has grown in a session, and what of that each kind of memory has,
 * counted from outside (memory_growth.h). It is held against what is live by samples, which is an estimate of a part.
 */
#pragma once

#include "input/recorded_session.h"
#include "stats/estimate.h"

struct resident_term {
	enum dump_memory_kind kind;
	double start, end, growth; /* bytes */
	const char *name;          /* of the memory that has most of the growth, or "" */
	double count_end;          /* threads */
	bool live; /* the blocks that are live by samples are in this, and in others that are marked so */
};

/* How what is live by samples is to the growth of the memory that may hold it. */
enum resident_live {
	RESIDENT_LIVE_FITS, /* within what is known of both: the terms that are marked */
	RESIDENT_LIVE_LESS, /* less for certain than the terms that are marked: the rest was freed and kept, or not seen
	                     */
	RESIDENT_LIVE_MORE, /* more for certain: memory from before was used again, or not all was touched */
};

struct report_resident {
	bool known;
	const char *why; /* else why it is not, or "" */
	bool malloc_known;
	double start, end, growth; /* of VmRSS */
	double swapped_growth;
	struct resident_term terms[DUMP_MEMORY_KINDS]; /* with a start or an end, those that changed most first */
	size_t count;
	double rest;           /* of the growth, in no term */
	const char *allocator; /* that is used beside glibc's malloc, or "" */
	bool allocator_known;  /* its blocks are told apart; else they are in the anonymous memory */
	enum resident_live live;
	double beside_low,
		beside_high; /* LESS: what of the marked terms is not live by samples. MORE: by how much it is more */
};

/* The sum over sessions, which keep the names. Unknown if it is of one of them. */
void resident_make(struct report_resident *r, const struct recorded_session *sessions, size_t count);
/* live: by samples. high: at most, with what the allocator adds. mmap: mappings are sampled, too. */
void resident_judge(struct report_resident *r, const struct estimate *live, double high, bool mmap);
/* The growth of what may be blocks of allocators. */
double resident_of_allocators(const struct report_resident *r);
const char *resident_kind_name(enum dump_memory_kind kind);
