/* SPDX-License-Identifier: MIT */
/* What will be hooked: GOT entries (got_plan.h), and functions at their entries (entry_hooks.h). */
#pragma once

#include "session/session.h"
#include "entry/stored_pointers.h"

/* Before anything is touched. -ENOENT: nothing could be hooked. */
int plan_session(struct session *s, struct err *e) WARN_UNUSED;
/* For --doctor, whose view has a plan of GOT entries: the allocators, and the hooks that would be chosen
 * (session.hooks). allocators_free after.
 *
 * *stored: an allocation function to which the program has stored a pointer (stored_pointers.h). Its allocator is
 * hooked at the entries of its functions, if that is possible.
 */
int plan_look(struct session *s, struct allocators *found, struct stored_pointer *stored, struct err *e) WARN_UNUSED;
/* … and what of the GOT entries remains then: those that the hooks do not see, and whose value nobody can copy. Fails
 * only for want of memory. */
int plan_relieve(struct session *s, struct err *e) WARN_UNUSED;
/* For modules that were loaded since: what is hooked already stays so, functions at their entries are never added. */
int plan_again(struct session *s, const struct got_plan_options *options, struct err *e) WARN_UNUSED;
