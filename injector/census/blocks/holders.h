/* SPDX-License-Identifier: MIT */
/*
 * Who holds the blocks of malloc: the variable, or other memory, from which each was reached first, and the path from
 * it to most of them. What several hold is counted once, with the one that leads there in the fewest steps; variables
 * of modules go before all else.
 */
#pragma once

#include "base/string_table.h"
#include "census/pages/stack_owners.h"
#include "census/reach/reach.h"

#define HOLDER_STEPS 4u

struct holder_step {
	char what[128];
	uint64_t blocks; /* that are alike and follow each other */
};

struct holder {
	uint64_t blocks, bytes;
	uint32_t heaviest, last; /* in reach.queue: the first block on the path to most of it, and the last */
	uint32_t heaviest_units;
	struct holder_step steps[HOLDER_STEPS];
	unsigned step_count;
	uint64_t below; /* blocks behind the last step */
};

struct holders {
	bool known;
	struct string_table names;
	struct holder *list; /* by the number of their names */
	uint32_t *order;     /* those that hold most first */
	uint64_t bytes;      /* of all */
};

/* shown: of so many the path is found. -ENOMEM. holders_free afterwards; on failure, too. */
int holders_take(struct holders *h, const struct reach *r, const struct stack_owners *stacks,
                 const struct target_memory *process, uint32_t shown, struct err *e) WARN_UNUSED;
void holders_free(struct holders *h);
