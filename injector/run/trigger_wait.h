/* SPDX-License-Identifier: MIT */
/*
 * Waiting until a condition of --when holds. Four times a second /proc/PID/status is read, some hundredths of a
 * millisecond of work; the process is not touched, and no lock is held that another memattach would wait for. It is
 * announced that a session is to come (session_lock.h), so memattach --detach ends the waiting.
 */
#pragma once

#include "session/session.h"

/*
 * Waits, and says so. 0: one of the conditions holds, and s->target is open. -ESRCH: the process has ended meanwhile;
 * -EINTR: a signal came.
 */
int trigger_wait(struct session *s, struct err *e) WARN_UNUSED;
