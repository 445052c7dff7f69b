/* SPDX-License-Identifier: MIT */
/*
 * Walks the stack of a stopped thread with libunwind-ptrace.
 *
 * libunwind's own accessors map the ELF file of every frame anew and read the stack word by word; a thread is stopped
 * meanwhile. So unwind information is found through the modules that are known already (search table of .eh_frame_hdr
 * in the target's memory), and memory is read by pages through a cache that stays warm for what cannot change.
 */
#ifndef MEMATTACH_STACK_WALK_H
#define MEMATTACH_STACK_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "modules.h"
#include "tracee.h"

struct stack_walk;

#define STACK_WALK_FRAMES 512

/* modules and memory must outlive it; when the modules change, make a new one. NULL: out of memory. */
struct stack_walk *stack_walk_new(const struct modules *modules, const struct target_memory *memory);
void stack_walk_free(struct stack_walk *w);
const struct target_memory *stack_walk_memory(const struct stack_walk *w);

/* Called for each frame, innermost first; pc is the interrupted instruction in frame 0, else a return address. False
 * ends the walk. */
typedef bool (*stack_walk_fn)(void *context, unsigned frame, uint64_t pc, uint64_t sp);

/*
 * How a walk ended. A frame without unwind information is passed by its frame pointer, as if it had one: that is a
 * guess. %rbp may hold anything there; zero looks like the outermost frame, and a pointer to other data leads past
 * frames that exist.
 */
struct stack_walk_end {
	bool reached;         /* something that looks like the outermost frame */
	bool guessed;         /* a frame without unwind information was passed or was the last */
	unsigned frames;      /* how many were visited */
	unsigned guess_frame; /* the innermost such frame … */
	uint64_t guess_pc;    /* … and where it is */
};

/* Every frame of the thread was visited. */
static inline bool stack_walk_complete(const struct stack_walk_end *end)
{
	return end->reached && !end->guessed;
}

/*
 * Reads ahead the unwind information that the walk of a thread that sleeps at pc is likely to need, as long as it is
 * not stopped, which makes its stop shorter: of pc, and of whatever on its stack may be a return address. Never fails.
 */
void stack_walk_read_ahead(struct stack_walk *w, uint64_t pc, uint64_t sp);

/* The thread must be stopped. Never fails; end says what it is worth. */
void stack_walk(struct stack_walk *w, const struct tracee *t, stack_walk_fn visit, void *context,
                struct stack_walk_end *end);

#endif
