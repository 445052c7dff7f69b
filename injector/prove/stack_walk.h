/* SPDX-License-Identifier: MIT */
/*
 * Walks the stack of a stopped thread by the rules that were compiled of the modules' call frame information
 * (unwind/), in a child without privileges: nothing that the target has written is interpreted here, and while the
 * thread is stopped nothing but its stack is read, each page of it once in a walk.
 *
 * Each step reads a few words, and there are no more than STACK_WALK_FRAMES of them, whatever the stack says.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "elf/modules.h"
#include "unwind/table_writer.h"
#include "touch/threads/tracee.h"

struct stack_walk;

#define STACK_WALK_FRAMES 512

/*
 * All three must outlive it; when the modules change, make a new one. A module whose rows are not in the tables
 * (unwind_tables_compile) is one without unwind information. NULL: out of memory.
 */
struct stack_walk *stack_walk_new(const struct modules *modules, const struct target_memory *memory,
                                  const struct unwind_tables *tables);
void stack_walk_free(struct stack_walk *w);
const struct target_memory *stack_walk_memory(const struct stack_walk *w);

/* Called for each frame, innermost first; pc is the interrupted instruction in frame 0, else a return address. False
 * ends the walk. */
typedef bool (*stack_walk_fn)(void *context, unsigned frame, uint64_t pc, uint64_t sp);

/*
 * How a walk ended. A frame without unwind information is passed by its frame pointer, as if it had one: that is a
 * guess. The frame pointer may hold anything there; zero looks like the outermost frame, and a pointer to other data
 * leads past frames that exist.
 */
struct stack_walk_end {
	bool reached;         /* something that looks like the outermost frame */
	bool guessed;         /* a frame without unwind information was passed or was the last */
	bool in_handler;      /* a frame returns to code that a signal has interrupted */
	unsigned frames;      /* how many were visited */
	unsigned guess_frame; /* the innermost such frame … */
	uint64_t guess_pc;    /* … and where it is */
};

/* Every frame of the thread was visited. */
static inline bool stack_walk_complete(const struct stack_walk_end *end)
{
	return end->reached && !end->guessed;
}

/* The thread must be stopped. Never fails; end says what it is worth. */
void stack_walk(struct stack_walk *w, struct tracee *t, stack_walk_fn visit, void *context, struct stack_walk_end *end);
/* The same of a thread that sleeps in the kernel and is not stopped, as far as no rule needs the frame pointer that it
 * had. What it is worth depends on whether the thread has slept all the time (sleeper_sleeps). */
void stack_walk_asleep(struct stack_walk *w, uint64_t pc, uint64_t sp, stack_walk_fn visit, void *context,
                       struct stack_walk_end *end);
