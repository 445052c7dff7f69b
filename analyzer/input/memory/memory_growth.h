/* SPDX-License-Identifier: MIT */
/* What the resident memory of a process was before the attach and after the detach, by kind, as a dump has it. */
#pragma once

#include <stdbool.h>

#include "dump/dump_reader.h"

struct memory_part {
	double start, end;   /* resident bytes */
	double named_growth; /* … of the name that grew most, or shrank most */
	char name[DUMP_MEMORY_NAME_MAX];
	double count_end; /* of threads, or mappings */
};

struct memory_growth {
	bool known;                     /* there are both looks; */
	char why[DUMP_MEMORY_NAME_MAX]; /* else why one failed, or "": nobody has looked, or the session has not ended
	                                   so */
	bool malloc_known;              /* LIVE and FREED are told apart; else MALLOC is all of it */
	bool content_known;             /* else ANONYMOUS has all that private memory may be */
	double rss_start, rss_end;
	double swapped_start, swapped_end;
	char allocator[DUMP_MEMORY_NAME_MAX]; /* that is used beside glibc's, or "" */
	bool allocator_known;                 /* what is live in it is told apart; else ANONYMOUS has it */
	struct memory_part parts[DUMP_MEMORY_KINDS];
};

/* -ENOMEM. Of a dump without looks, or with damaged ones, it is not known. */
int memory_growth_read(struct memory_growth *g, struct dump *dump) WARN_UNUSED;
/* Adds those of another process; what is known of one alone is known of none. */
void memory_growth_add(struct memory_growth *sum, const struct memory_growth *g);
