/* SPDX-License-Identifier: MIT */
/*
 * Which stacks the payload has stored since the last look. A stack is complete when its word is in the index (struct
 * dump_stack), so that is what is looked at: words come, and none changes. The target can write there: what a word
 * leads to is copied, and read only if it is in memory of stacks that memattach has given it.
 */
#pragma once

#include <stddef.h>

#include "recording/dump_writer.h"

struct new_stacks {
	uint64_t *seen; /* a bit for each word of all index regions */
	size_t seen_words;
	uint64_t filled;     /* bytes of stacks, at the last look */
	unsigned looks_left; /* what takes room is in the index a little later */
};

/*
 * Calls fn with the frames of each that is new, native ones only. Cheap where none is; all: looks whatever there is.
 * -ENOMEM: some may come at the next look only.
 */
int new_stacks_each(struct new_stacks *n, const struct dump_writer *w, bool all,
                    void (*fn)(void *arg, const uint64_t *frames, uint32_t count), void *arg,
                    struct err *e) WARN_UNUSED;
void new_stacks_done(struct new_stacks *n);
