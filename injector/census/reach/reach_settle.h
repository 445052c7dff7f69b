/* SPDX-License-Identifier: MIT */
/*
 * The last step of reach.h, while all threads stand still, or in a clone. What is called here ends at
 * reach.give_up_ns at the latest, and while they stand still it must not take long.
 */
#pragma once

#include "census/reach/reach.h"
#include "census/reach/stack_in_use.h"

/* What the threads have in their registers, and the kernel of the process. */
struct reach_stop {
	uint64_t *words;
	size_t word_count;
	struct reach_thread *threads;
	size_t thread_count;
};

/* Before the stop: reads what settling needs that is not yet noted. */
void reach_prepare(struct reach *r);
/* How much reach_settle reads, by the pages that there were. */
uint64_t reach_bytes(const struct reach *r);
/* Reads so many bytes as reach_settle does, or all there are; how many there were. */
uint64_t reach_try_reading(struct reach *r, uint64_t bytes);
/* While nothing changes: is an arena's mutex, its first word, held? */
bool reach_is_locked(const struct reach *r);
/*
 * By the mappings and pages of now, which must stay until r is closed. -EAGAIN: a thread is in malloc: let them go on,
 * and try again. -ETIME: it would take too long. -EBUSY: its heap was not as it must be. -ENOMEM.
 */
int reach_settle(struct reach *r, const struct maps *maps, const struct resident_pages *pages,
                 const struct reach_stop *stop, struct err *e) WARN_UNUSED;
