/* SPDX-License-Identifier: MIT */
/*
 * May this stopped thread be borrowed? dlopen takes the locks of the loader and of the allocator. If the thread itself
 * holds one of them, it would wait for itself for ever (or, with a recursive lock, see the loader's lists half
 * changed). So a thread is unsafe if any of its frames is
 *
 *   - in the loader,
 *   - in the allocator (below),
 *   - in a function of the C library that holds such locks while it runs: dlopen, fork, pthread_create, exit …,
 *   - in memattach's payload, trampolines or cave,
 *   - what a signal handler returns to: what it has interrupted may hold any lock, also the program's own, and a
 * collector that has suspended the thread there counts on its standing still,
 *
 * or if it is no plain thread (plain_thread.h), or if it is inside an rseq critical section (its restart would be
 * lost), or if the stack cannot be walked to its end: what cannot be seen counts as unsafe. Code without unwind
 * information is passed by frame pointers where it is the program's own (Go, JIT compilers); in the C library, the
 * allocator and the loader it ends the walk.
 *
 * The allocator is that whose malloc dlopen calls. In the C library it is the functions of the malloc family with
 * everything between their neighbours in the symbol table, which are their static helpers; a library that is nothing
 * but an allocator counts as a whole. Another module may define malloc beside much else, above all a program that has
 * jemalloc or tcmalloc linked in. There the functions of the allocator are found by what malloc refers to
 * (allocator_code.h): a thread is unsafe in one that malloc enters, whatever it waits for; in one that is only related
 * to it unless the thread is idle: asleep in a call that waits for something from outside for as long as it takes
 * (epoll_wait, poll, accept, read from a pipe). An allocator that has taken a lock makes no such call: it would hold up
 * the whole program. What it does call then may be a futex, mmap and its kin, sched_yield, nanosleep (spin locks) and
 * write (messages), and none of these counts as idle. Where allocator_code gives no answer, all of the module counts as
 * related.
 *
 * Where memattach maps the payload by itself (libc_loads_payload: musl, static programs, and glibc programs in which
 * no thread came to such a point) no function of the target is called that takes a lock: there a thread may be in the
 * allocator or the loader, and its stack need not be walked to its end, which Debian's musl, without unwind
 * information, would rarely allow. It may even be in a call that a hook of ours makes and that cannot be seen: what is
 * patched and restored by it then might be by another thread as well, and before anything is unmapped no thread is in
 * a hook any more (quiesce.h).
 */
#pragma once

#include "elf/libc.h"
#include "prove/stack_walk.h"

struct code_range {
	uint64_t start;
	uint64_t end;
	bool unless_idle; /* safe for a thread that sleeps in a call in which nobody holds a lock of the allocator */
	char what[48];    /* "malloc", "the loader" */
};

struct lock_code {
	uint64_t start;
	uint64_t end;
};

#define SAFE_POINT_LOCK_MODULES 4

struct safe_points {
	struct code_range *list; /* sorted by start */
	size_t count;
	struct lock_code lock_code[SAFE_POINT_LOCK_MODULES]; /* modules in which locks are held */
	unsigned lock_code_count;
	struct stack_walk *walk;
	enum libc_kind libc;
	bool takes_no_locks; /* nothing is called that would wait for one */
};

int safe_points_init(struct safe_points *s, const struct modules *modules, const struct libc *libc,
                     const struct target_memory *memory, const struct maps *maps, const struct unwind_tables *tables,
                     struct err *e) WARN_UNUSED;
void safe_points_done(struct safe_points *s);
/* Adds code in which no borrowed thread may be (payload, trampolines, cave). */
int safe_points_add(struct safe_points *s, uint64_t start, uint64_t end, const char *what, struct err *e) WARN_UNUSED;

/* The thread is stopped. 0: safe. -EBUSY: not now, the text says why ("in malloc"). */
int safe_point_check(const struct safe_points *s, struct tracee *t, struct err *e) WARN_UNUSED;
