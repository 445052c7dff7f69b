/* SPDX-License-Identifier: MIT */
/*
 * Who loads the payload into a glibc program (load.h): its own dlopen, or memattach.
 *
 * dlopen takes the loader's lock in a thread that knows nothing of it. What could meet it there:
 *
 *   - another thread: one that holds the lock and waits for the borrowed thread (a plugin's constructor that hands work
 *     over, a collector that stops the world in dl_iterate_phdr), or forks, so that the child has a lock for ever
 *   - a thread that is no more, or that was not copied by the fork which made this process: nobody frees its lock. (Of
 *     the loader's two, glibc's fork makes only one anew, _Fork and clone(2) none, nor those of the allocator.)
 *   - code of the program in the loader: auditors (LD_AUDIT), which are called on the stub's stack, with locks of their
 *     own; libraries that define dlopen, dlclose or dl_iterate_phdr for others
 *   - a collector, which takes all writable segments that the loader knows for roots, and reads them when the payload
 *     is gone
 *   - an allocator that is not the C library's: the program may hold its lock and be anywhere (malloc_disable,
 *     mallctl, a tracker of its own)
 *
 * So dlopen is called only where there is none of these, or if --loader target asks for it and it is only threads.
 * What memattach maps by itself is in no list, and no function of the program runs for it.
 */
#pragma once

#include "session/session.h"

/* After inspect_session, no payload is in the target: sets maps_payload and loader_reason. -ENOTSUP: --loader target
 * asks for what could harm the program. */
int loader_choice_make(struct session *s, struct err *e) WARN_UNUSED;
/* Has the process more than one thread? */
bool loader_choice_has_more_threads(const struct session *s);
/* Why its threads, or those of earlier, forbid dlopen; NULL: they do not. */
const char *loader_choice_threads_against(const struct session *s);
/* For the plan that follows: memattach maps it, whatever could. why is kept. */
void loader_choice_set_aside(struct session *s, const char *why);
