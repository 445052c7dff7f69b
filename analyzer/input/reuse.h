/* SPDX-License-Identifier: MIT */
/*
 * Finds, for each sampled block whose free was missed, the sampled block that was given its address later: the record
 * of the one ends with the stamp of the allocation of the other (payload/hook.c writes both from one clock reading).
 * The dump does not say where the later one is: live, or in the history. So the records are read a second time, and
 * only if there is such a block.
 *
 * Where the later one has no record any more it is taken to be as large as the earlier one, which the allocator thought
 * fit for the same place; so are those of more than REUSE_PAIRS_MAX pairs. But in a session that was thinned it may
 * have been given up, and then the pair is left out, since those that are left stand for it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "dump/dump_reader.h"
#include "base/map.h"

#define REUSE_PAIRS_MAX (1u << 18)

struct reuse_pair {
	uint64_t size; /* of the earlier block */
	double p;      /* that it was sampled */
	uint32_t stack;
	uint32_t later; /* index of the other one in later */
};

/* Starts as zero. */
struct reuse {
	struct reuse_pair *pairs;
	size_t count;
	struct map later_of; /* stamp of the later allocation -> index in later */
	double *later;       /* probability that it was sampled, 0: not found */
	size_t later_count;
};

/* A block whose record ended with this stamp. 1 if there is room for no more; -ENOMEM. */
int reuse_add(struct reuse *reuse, uint64_t stamp, const struct reuse_pair *pair) WARN_UNUSED;
/* Reads the records of the dump for the later ones. */
int reuse_find(struct reuse *reuse, struct dump *dump) WARN_UNUSED;
/* The probability that the later one was sampled, as said above; 0: leave the pair out. */
double reuse_later(const struct reuse *reuse, const struct reuse_pair *pair, const struct dump *dump);
void reuse_done(struct reuse *reuse);
