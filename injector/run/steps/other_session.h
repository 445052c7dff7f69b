/* SPDX-License-Identifier: MIT */
/* A payload that is in the target already, or comes there at the same time: of a memattach that lives, or of one that
 * died. */
#pragma once

#include "session/session.h"

/*
 * What a session in the target is. The memattach that runs a session has the lock of the process (session_lock.h): so
 * with the lock in our hands its memattach is dead, or the process inherited hooks by fork that have done nothing
 * since.
 */
bool other_session_is_inherited(const struct session *s);

/*
 * Before an attach, with the lock held. What a dead memattach left, or a fork, is taken out first (said).
 */
int other_session_make_way(struct session *s, struct err *e) WARN_UNUSED;

/* For --detach: another --detach, which takes this one for a session, does not end it. */
void other_session_outlive_detach(void);

/*
 * For --detach: takes the lock. A memattach that has it is told to end, and waited for; *ended: there was one. Nobody
 * else is sent a signal.
 */
int other_session_lock(struct session *s, bool *ended, struct err *e) WARN_UNUSED;
/* Then: each memattach that waits for a session of the process (--every, --when) is told to end, and waited for. Says
 * which; *ended: there was one. One that cannot be shown to be a memattach is named, and left alone. */
int other_session_end_waiting(const struct session *s, bool *ended, struct err *e) WARN_UNUSED;
