/* SPDX-License-Identifier: MIT */
/* The gates (include/gates.h): mapped by CONTROL_START, set by CONTROL_PATCH, made inert by CONTROL_INERT. Only the
 * control thread calls these functions. */
#ifndef MEMATTACH_PAYLOAD_GATE_H
#define MEMATTACH_PAYLOAD_GATE_H

#include <stddef.h>
#include <stdint.h>

#include "control.h"
#include "hook_call.h"
#include "thread_slot.h"

/*
 * What all gates use. A forked child has a copy of it: its first thread goes on charging the near slot, and what that
 * samples finds the session switched off; the filter is wiped there.
 */
struct gates_shared {
	uint64_t near_owner;  /* (atomic) near.owner, for all to read */
	uint32_t filter_mask; /* never changes */
	uint32_t reserved_;
	uint64_t apart_[14];
	struct thread_slot near;
};

_Static_assert(offsetof(struct gates_shared, near_owner) == GATES_NEAR_OWNER, "near_owner");
_Static_assert(offsetof(struct gates_shared, filter_mask) == GATES_FILTER_MASK, "filter_mask");
_Static_assert(offsetof(struct gates_shared, near) == GATES_NEAR, "near");
_Static_assert(sizeof(struct gates_shared) == GATES_SHARED_BYTES, "gates_shared");

/* Never NULL: before CONTROL_START it is one that no gate uses. */
extern struct gates_shared *gates_shared HIDDEN;

/* Maps the gates' code from payload_fd, their data, and so many counters for the filter, which a forked child will find
 * empty; fills the session's gates_* and text_* words. 0 or -errno. */
int64_t gates_map(int payload_fd, uint32_t counters);
/* Sets gates [session.gate_count, count) and counts them in. 0 or -errno. */
int64_t gates_set(const struct control_gate *gates, uint32_t count);
void gates_inert(void);
/* Inert gates are nobody's from now on, and may stay. */
void gates_leave(void);
/* What a slot holds that is patched to gate i. */
uint64_t gates_slot_value(uint32_t i);

#endif
