/* SPDX-License-Identifier: MIT */
/*
 * Clones that memattach has made of a process (memory_clone.h), as /proc tells of them.
 *
 * One is known by what no program makes by accident: it is a child that sends no signal at its end, and is named
 * OUR_CLONE_NAME; both can still be seen of a zombie. So no child of the program's own is ever taken for one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "process/target.h"

#define OUR_CLONE_NAME "memattach-clone"

struct our_clone {
	pid_t pid;
	pid_t inner; /* its number for the process */
	bool ended;  /* a zombie */
	bool sleeps; /* as the stub lets it, until somebody holds it */
};

struct our_clones {
	struct our_clone *list; /* malloc'ed */
	size_t count;
	/* Living children that may yet be some: a clone has its name from the first time on that it gets a processor.
	 */
	size_t expected;
};

/* Which children are to count. */
struct our_clone_wish {
	pid_t known;          /* its number (inner): one of ours though it may not have its name yet; 0: none */
	uint64_t since_ticks; /* who has begun before that (field 22 of stat) is not expected to become one */
};
#define OUR_CLONE_NAMED                                                                                                \
	(struct our_clone_wish)                                                                                        \
	{                                                                                                              \
		.since_ticks = UINT64_MAX                                                                              \
	}

/* -ENOMEM, or what kept a child from being looked at; *clones is then as it was. */
int our_clones_find(const struct target *t, struct our_clone_wish wish, struct our_clones *clones,
                    struct err *e) WARN_UNUSED;
/* Is this a child of the process that is known as one, now? Of a child that nobody can collect meanwhile it stays true.
 */
bool our_clone_is(const struct target *t, pid_t pid);
/* Ends those that live, and waits until they are zombies. Only with the lock of the process (session_lock.h), or for
 * one's own: another memattach may read one. */
void our_clones_end(const struct target *t, pid_t known);
