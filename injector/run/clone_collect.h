/* SPDX-License-Identifier: MIT */
/* Zombies of clones that memattach has made (our_clone.h): a borrowed thread of the process waits for them. */
#pragma once

#include "session/session.h"

/*
 * With the lock, and after inspect_session: ends those that still live, and has all collected; known: as for
 * our_clones_find. *collected: how many. -errno: some are left.
 */
int clone_collect(struct session *s, pid_t known, unsigned *collected, struct err *e) WARN_UNUSED;
/* The same where a memattach may have died as it made one. */
int clone_collect_of_dead(struct session *s, unsigned *collected, struct err *e) WARN_UNUSED;
/* The same by itself, and clears the padding that the stub was in: takes the lock, which another memattach may have for
 * up to `patience_ns`; nothing is said. */
int clone_collect_alone(const struct session_options *o, uint64_t patience_ns, struct err *e) WARN_UNUSED;
