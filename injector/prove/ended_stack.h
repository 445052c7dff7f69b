/* SPDX-License-Identifier: MIT */
/*
 * Stacks of threads that have ended. glibc keeps them for threads to come, or until somebody joins the thread, with
 * all that was left on them; no code of the program may use one.
 *
 * What glibc knows of a thread (struct pthread) lies at the top of the stack that it made. The kernel sets the tid in
 * it to 0 when the thread ends, pthread_join() to -1; by that glibc tells a stack that is free. So a mapping is
 * believed to be such a stack if there is a structure near its end that points to itself with its first and third
 * words, has such a tid, is on one of glibc's lists, and names a block of memory with a guard that is just this mapping
 * and the guard below it. glibc gives a stack that the program brought no guard: such memory is the program's again
 * after the end. Where stacks share their mapping (thread_stack.h) the structure is looked for above an address, and
 * names a block that has the address in it.
 */
#pragma once

#include "maps/maps.h"
#include "process/target_read.h"
#include "prove/thread_stack.h"

/*
 * Up to where the mapping, one of maps, is the stack of an ended thread now; 0: it is none, or that cannot be told.
 * tid_offset: as tid_offset.h finds it, 0 unknown.
 */
uint64_t ended_stack_end(const struct target_memory *memory, uint32_t tid_offset, const struct maps *maps,
                         const struct mapping *m);
/*
 * Is there an ended thread's stack around the address, in a mapping that more of them share? Then sp is up to where.
 * False: *stack is none.
 */
bool ended_stack_around(struct thread_stack *stack, const struct target_memory *memory, uint32_t tid_offset,
                        const struct mapping *m, uint64_t address);
