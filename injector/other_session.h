/* SPDX-License-Identifier: MIT */
/* A payload that is in the target already: of a memattach that runs, or of one that died. */
#ifndef MEMATTACH_OTHER_SESSION_H
#define MEMATTACH_OTHER_SESSION_H

#include "session.h"

/* The payload that was found belongs to a memattach that lives: payload.block.injector_pid. */
bool other_session_runs(const struct session *s);

/*
 * Before an attach. A running session of another memattach: -EBUSY, it is named. What a dead one left is taken out first (said). An idle payload that the C
 * library never unloads stays, to be used again.
 */
int other_session_make_way(struct session *s, struct err *e) WARN_UNUSED;

/* For --detach: asks the memattach that runs the session to end and waits for it. *done: it did. Not done: it is dead, go on. */
int other_session_end(struct session *s, bool *done, struct err *e) WARN_UNUSED;

#endif
