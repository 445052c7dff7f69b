/* SPDX-License-Identifier: MIT */
/*
 * Pointers in memory that a clone does not hold still (clone_prospect.h): shared memory goes on changing, and some
 * private memory is not in it at all. So what leads to blocks is read from the process itself, while it stands still
 * for its clone.
 */
#pragma once

#include "census/reach/reach.h"
#include "process/clones/clone_prospect.h"

struct apart_words {
	const struct reach *reach;
	const struct target *target;
	const struct maps *maps; /* of now */
	const struct clone_prospect *prospect;
	uint64_t until_ns; /* CLOCK_MONOTONIC */
};

/* Adds all words that lead near blocks to a list of base/grow.h. -ETIME: it takes longer than until_ns. -ENOMEM,
 * -errno. */
int apart_words_read(const struct apart_words *a, uint64_t **words, size_t *count, struct err *e) WARN_UNUSED;
/* Bytes of such memory, by the pages that there were. */
uint64_t apart_words_bytes(const struct reach *r, const struct clone_prospect *p);
/*
 * Private mappings that have come since others were read may have been taken away from its children at once, as V8
 * does: those of up to 16 MiB, 64 MiB in all, are added to what a clone has not. -ENOMEM.
 */
int apart_words_add_new(struct clone_prospect *p, const struct maps *before, const struct maps *now,
                        struct err *e) WARN_UNUSED;
/* -EAGAIN: a clone lacks private memory that it was to have. */
int apart_words_check(const struct maps *maps, const struct maps *of_clone, const struct clone_prospect *p,
                      struct err *e) WARN_UNUSED;
