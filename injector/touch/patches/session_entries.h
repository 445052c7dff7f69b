/* SPDX-License-Identifier: MIT */
/* The GOT entries of a session as they are in the target. */
#pragma once

#include "session/session.h"

/* The session's GOT entries as they are in the target; *entries is malloc'ed. */
int session_entries(struct session *s, struct got_entry **entries, uint32_t *count, struct err *e) WARN_UNUSED;
/* Marks GOT entries of modules that are gone: what is there now is somebody else's. And those that hold our trampoline
 * again as ours. */
int session_entries_mark_gone(struct session *s, struct err *e) WARN_UNUSED;
/*
 * Gives modules_changed one patched word per module, to see a module that was closed and opened again in place.
 *
 * *watched is the number of GOT entries at the last call, 0 at first. An entry since then that is not ours any more is
 * a change: its module may have been opened again between the patch and this call. An older one is not watched: it
 * was looked at, and would be a change for ever.
 */
int session_entries_watch(struct session *s, uint32_t *watched, struct err *e) WARN_UNUSED;
