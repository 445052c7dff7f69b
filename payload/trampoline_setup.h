/* SPDX-License-Identifier: MIT */
/* The trampolines (include/trampolines.h): mapped by CONTROL_START, set by CONTROL_PATCH. Only the control thread calls
 * these functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control.h"
#include "hook_call.h"
#include "thread_state.h"

/*
 * What all trampolines use. A forked child has a copy of it: its first thread goes on charging the near thread state,
 * and what that samples finds the session switched off; the filter is wiped there.
 */
struct trampolines_shared {
	uint64_t near_owner;        /* (atomic) near.owner, for all to read */
	uint32_t filter_mask;       /* never changes */
	uint32_t filter_multiplier; /* the same */
	uint64_t apart_[14];
	struct thread_state near;
};

_Static_assert(offsetof(struct trampolines_shared, near_owner) == TRAMPOLINES_NEAR_OWNER, "near_owner");
_Static_assert(offsetof(struct trampolines_shared, filter_mask) == TRAMPOLINES_FILTER_MASK, "filter_mask");
_Static_assert(offsetof(struct trampolines_shared, filter_multiplier) == TRAMPOLINES_FILTER_MULTIPLIER,
               "filter_multiplier");
_Static_assert(offsetof(struct trampolines_shared, near) == TRAMPOLINES_NEAR, "near");
_Static_assert(sizeof(struct trampolines_shared) == TRAMPOLINES_SHARED_BYTES, "trampolines_shared");

/* Some trampoline is TRAMPOLINE_OUTER. */
extern bool trampolines_any_outer HIDDEN;
/* Some trampoline has a quiet function. */
extern bool trampolines_any_quiet HIDDEN;
/* Never NULL: before CONTROL_START it is one that no trampoline uses. */
extern struct trampolines_shared *trampolines_shared HIDDEN;

/* Maps the trampolines' code from payload_fd, their data, and so many counters for the filter, which a forked child
 * will find empty; fills the session's trampolines_* and text_* words. random: any number. 0 or -errno. */
int64_t trampoline_setup_map(int payload_fd, uint32_t counters, uint64_t random);
/* Sets trampolines [session.trampoline_count, count) and counts them in. 0 or -errno. */
int64_t trampoline_setup_fill(const struct control_trampoline *trampolines, uint32_t count);
/* Inert trampolines are nobody's from now on, and may stay. */
void trampoline_setup_leave(void);
/* Does the function pass on to others that are hooked (TRAMPOLINE_OUTER)? */
bool trampoline_setup_is_outer(const struct trampoline *trampoline);
/* The quiet function of the trampoline (control.h), 0 none; *aligned: it takes the alignment first. */
uint64_t trampoline_setup_quiet(const struct trampoline *trampoline, bool *aligned);
