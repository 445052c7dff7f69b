/* SPDX-License-Identifier: MIT */
/*
 * What a process that stands still has of pointers outside of its memory: registers of its threads, and words that the
 * kernel keeps for it. Where a thread is in malloc it is the wrong moment.
 */
#pragma once

#include "census/census.h"
#include "search/kernel_pointers.h"
#include "touch/remote/remote.h"
#include "touch/threads/stop_all.h"

struct stop_words {
	const struct census *census;
	struct kernel_pointers kernel;
	bool kernel_as_stopped;     /* its descriptors are those of the stop */
	const struct mapping *libc; /* the data that main_arena is in */
	struct reach_stop stop;
	bool no_memory;
};

/* stop_words_close afterwards; on failure, too. */
int stop_words_open(struct stop_words *w, const struct census *c, struct err *e) WARN_UNUSED;
/* After the stop: may it have had epoll descriptors of which nothing was read, as it had too many to be asked for all
 * while it stood still? It may if it has other ones by now. False where it has ended. */
bool stop_words_may_lack(const struct stop_words *w);
void stop_words_close(struct stop_words *w);
/* How long it takes to ask the kernel: epoll may tell of a million descriptors. */
uint64_t stop_words_kernel_ns(struct stop_words *w);
/* -EAGAIN: this thread may be in malloc. */
int stop_words_check(const struct stop_words *w, const struct registers *regs, pid_t tid, struct err *e) WARN_UNUSED;
/* Of all threads that are stopped, and of one that is borrowed (NULL: none is). -EAGAIN. */
int stop_words_read(struct stop_words *w, const struct stop_all *all, const struct remote *borrowed,
                    struct err *e) WARN_UNUSED;
