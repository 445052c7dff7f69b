/* SPDX-License-Identifier: MIT */
/* What will be hooked: GOT entries (got_plan.h), and functions at their entries (entry_hooks.h). */
#ifndef MEMATTACH_PLAN_H
#define MEMATTACH_PLAN_H

#include "session.h"

/* Before anything is touched. -ENOENT: nothing could be hooked. */
int session_plan(struct session *s, struct err *e) WARN_UNUSED;
/* For --doctor, whose view has a plan of GOT entries: the allocators, and the hooks that would be chosen
 * (session.hooks). *stored_at: where the program has stored a pointer to an allocation function, 0: nowhere.
 * allocators_free after. */
int session_plan_look(struct session *s, struct allocators *found, uint64_t *stored_at, struct err *e) WARN_UNUSED;
/*
 * With HOOKS_AUTO: an allocation function that GOT entries lead to and whose address may be copied from one, in a
 * process with more memory than is searched (escape.h); else 0. At the detach nobody could tell that no copy was made,
 * so that the trampolines would have to stay; nor can it be told now whether pointers to it are stored. Its allocator
 * is hooked at the entries of its functions, if that is possible.
 */
uint64_t session_plan_unsearchable(const struct session *s);
/* For modules that were loaded since: what is hooked already stays so, functions at their entries are never added. */
int session_plan_again(struct session *s, const struct got_plan_options *options, struct err *e) WARN_UNUSED;

#endif
