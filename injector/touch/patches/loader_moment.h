/* SPDX-License-Identifier: MIT */
/*
 * The moment in which a borrowed thread calls dlopen or dlclose.
 *
 * Beside other threads that is dangerous (loader_choice.h), but cannot always be avoided: with --loader target, and
 * where the process had one thread when dlopen loaded the payload, and has more when dlclose unloads it. So the others
 * stand still meanwhile: nobody forks, and nobody begins to wait. Before, each is seen outside of the loader and the
 * allocator, by its stack, and the loader's locks are seen free, also where there is one thread. They go on when the
 * loan ends. If the call lasts for longer than a second all the same, they do so meanwhile: it waits for one of them.
 */
#pragma once

#include "touch/patches/loan.h"
#include "touch/threads/stop_all.h"

struct loader_moment {
	struct loan *loan;
	struct stop_all others;
};

/*
 * The thread is at a checkpoint. -EDEADLK: it is not such a moment, and the thread has to be given back before another
 * is tried, since who holds the lock may wait for it. loader_moment_end afterwards, also on failure.
 */
int loader_moment_begin(struct loader_moment *m, struct loan *l, struct err *e) WARN_UNUSED;
void loader_moment_end(struct loader_moment *m);
/* Waits for another moment; false: the time is up. */
bool loader_moment_pause(uint64_t deadline_ns);
