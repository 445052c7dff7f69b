/* SPDX-License-Identifier: MIT */
/*
 * Stacks that glibc has made for threads, where the mappings do not tell them apart: since 2.42 the guard below a stack
 * is no mapping of its own (MADV_GUARD_INSTALL), so stacks next to each other are one mapping.
 *
 * What glibc knows of a thread (struct pthread) lies at the top of the stack, where the thread pointer is. Three words
 * of it next to each other, stackblock, stackblock_size and guardsize, name the block. A stack that the program brought
 * has no guard.
 */
#pragma once

#include "maps/maps.h"
#include "process/target_read.h"

struct thread_stack {
	uint64_t start; /* above the guard */
	uint64_t sp;    /* of a live thread, when it was looked at: nothing below was alive */
	uint64_t end;
};

/*
 * The stack of a thread whose control block is at structure, in that mapping with its guard and its block; sp is set to
 * structure. False: it is none, or cannot be told.
 */
bool thread_stack_of(struct thread_stack *stack, const struct target_memory *memory, const struct mapping *m,
                     uint64_t structure);

/* Where a thread's stack was when it was seen outside of the payload. */
struct stack_position {
	uint64_t sp;             /* below, the red zone left out, nothing of this stack was alive */
	uint64_t thread_pointer; /* 0: not known */
	bool walked; /* to where the thread began: all of its frames are above, and none is in the payload */
	pid_t tid;
};

struct thread_stacks {
	struct thread_stack *list; /* sorted */
	size_t count;
};

/* Those of threads that were walked. positions: of all threads, also what another thread has on one of the stacks. */
int thread_stacks_find(struct thread_stacks *stacks, const struct stack_position *positions, size_t count,
                       const struct target_memory *memory, const struct maps *maps, struct err *e) WARN_UNUSED;
void thread_stacks_free(struct thread_stacks *stacks);
/* The one around the address, NULL none. */
const struct thread_stack *thread_stacks_at(const struct thread_stacks *stacks, uint64_t address);
