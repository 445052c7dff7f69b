/* SPDX-License-Identifier: MIT */
/* How much was resident during a session, by kind, as a dump has it. */
#pragma once

#include "dump/dump_reader.h"

struct usage_point {
	double seconds; /* since the start of the session */
	bool is_look;   /* kinds are told apart; else there are ANONYMOUS, FILES and SHARED alone */
	double rss, swapped;
	double parts[DUMP_MEMORY_KINDS];
};

/* Whole and empty where the dump has none. */
struct usage {
	struct usage_point *list; /* in the order of their times */
	size_t count;
};

/* -ENOMEM. usage_done afterwards; on failure, too. */
int usage_read(struct usage *usage, struct dump *dump) WARN_UNUSED;
/* Which points to show, `most` at most, looks before others: each that returns true. */
bool usage_shows(const struct usage *usage, size_t i, size_t most);
void usage_done(struct usage *usage);
