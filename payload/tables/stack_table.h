/* SPDX-License-Identifier: MIT */
/* The interned stacks, and code objects: each distinct one is stored once in the dump, known by a reference of 32 bits.
 */
#pragma once

#include <stdint.h>

#include "dump_format.h"

/* What is to be stored if nothing with its hash is. */
struct stack_draft {
	uint64_t hash;
	uint64_t bytes; /* of the record */
	/* Fills all of it in. The draft is the first member of what it was made of. */
	void (*write)(struct dump_stack *record, const struct stack_draft *draft);
};

/* A stack: its frames, at most DUMP_FRAMES_MAX, and as many Python frames as its flags say. */
struct stack_draft_frames {
	struct stack_draft draft; /* stack_table_intern() fills it in, but for the hash (stack_hash.h) */
	const uint64_t *frames;
	const uint64_t *python;
	uint32_t count;
	uint32_t flags;
};

/* The record with this hash and its reference if it is stored, else NULL. */
struct dump_stack *stack_table_find(uint64_t hash, uint32_t *reference);
/* The record with the draft's hash, and its reference; stored now if it is new. NULL: no room. */
struct dump_stack *stack_table_store(const struct stack_draft *draft, uint32_t *reference);
/* The same for a stack. */
struct dump_stack *stack_table_intern(struct stack_draft_frames *stack, uint32_t *reference);
