/* SPDX-License-Identifier: MIT */
/* Steps that attach and the following of a session share. */
#ifndef MEMATTACH_FOLLOW_H
#define MEMATTACH_FOLLOW_H

#include "session.h"

#define SESSION_LEASE_NS 10000000000ull /* recording stops by itself when memattach is not heard of for so long */

/* Unwind tables of all modules into s->tables; coverage in s->coverage. */
int session_compile(struct session *s, struct err *e) WARN_UNUSED;
/* Writes module records for ids from first_id on, with notes on what is not covered. */
int session_record_modules(struct session *s, uint32_t first_id, struct err *e) WARN_UNUSED;
/* Names of the threads that have no record yet; again: also of those that have another name now. */
int session_record_threads(struct session *s, bool again, struct err *e) WARN_UNUSED;
/* The session's GOT entries as they are in the target; *entries is malloc'ed. */
int session_entries(struct session *s, struct got_entry **entries, uint32_t *count, struct err *e) WARN_UNUSED;
/* The allocator's malloc_usable_size, 0 if it does not serve every block that the trampolines of the plans see. */
uint64_t session_usable_size(const struct session *s);
/* Marks GOT entries of modules that are gone: what is there now is somebody else's. And those that hold our trampoline
 * again as ours. */
int session_mark_gone(struct session *s, struct err *e) WARN_UNUSED;
/* Gives modules_changed one patched word per module, to see a module that was closed and opened again in place. */
int session_watch(struct session *s, struct err *e) WARN_UNUSED;

#endif
