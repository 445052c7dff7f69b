/* SPDX-License-Identifier: MIT */
/*
 * A moment in which all threads of the target stand still (stop_all.h), found again and again until a deadline.
 *
 * Where jumps are to be written, none of them may go on in the middle of instructions that such a jump displaces: its
 * program counter is there, or its signal handler returns there. All stacks are walked for that; if one is found, or a
 * stack cannot be walked to its end and a word of it looks like it, all threads run again and another moment is tried.
 *
 * Processes that run in this memory and are no threads (children of vfork) are stopped, too. Where jumps are to be
 * written they are waited for instead: their parents, which sleep meanwhile, cannot be looked at.
 *
 * A recording whose lease ended meanwhile would be over before it has begun, so each attempt renews it.
 */
#pragma once

#include "session/session.h"

enum still_for {
	STILL_FOR_CODE,  /* jumps of session.hooks will be written */
	STILL_FOR_WORDS, /* no thread will go on otherwise than before */
	STILL_FOR_END,   /* the same, to give all back: the recording has ended */
};

/* Called while all stand still: what takes time comes before. */
typedef int (*still_moment_fn)(struct session *s, void *context, struct err *e);

/* -EBUSY: there was no such moment until the deadline; change was not called. Else what change returned. *longest_ns,
 * if longer, becomes how long the threads were stopped. */
int still_moment(struct session *s, enum still_for what, uint64_t deadline_ns, uint64_t *longest_ns,
                 still_moment_fn change, void *context, struct err *e) WARN_UNUSED;

/* Before anything is done to the process: waits while a process is in the way of session.hooks. -EBUSY: until the
 * deadline. */
int still_moment_foresee(const struct session *s, uint64_t deadline_ns, struct err *e) WARN_UNUSED;
