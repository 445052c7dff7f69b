/* SPDX-License-Identifier: MIT */
/*
 * Sessions again and again (--every), each a whole one with a dump of its own.
 *
 * Each session is a process of its own, which begins with what memattach was started with, as if it had been started by
 * hand; the parent has nothing of the target and only waits. The target is as it was between two sessions. Who wants
 * one session that goes on has it without --every: its dump can be read at any time.
 *
 * Sessions begin at times that are a period apart, whatever a session takes; a time that passes during one is left out,
 * and said. An attach that fails is said by the session, and tried again at the next time. There are no further
 * sessions, because each could make it worse,
 *
 *   - if something had to stay in the target: it would add up;
 *   - if a session was killed, by the kernel that is short of memory or by its watchdog: it is detached first;
 *   - if one was told to end, by a signal to either process or by memattach --detach: who said it meant all of them.
 *     Between two sessions memattach --detach finds the parent by a lock of its own (session_lock.h).
 *
 * If the parent dies, the session that runs ends and detaches as at a signal.
 */
#pragma once

#include "host/exit_status.h"
#include "session/session.h"

/* Times that are a period apart, counted from the first: what happens in between, and how long, moves none of them. */
struct schedule {
	uint64_t first_ns, period_ns; /* period_ns > 0 */
	uint64_t number;              /* of the time that came last; the first one is 0 */
};

/* The first time after now, which becomes the last that came. *missed: how many have passed since the one before. */
uint64_t schedule_next(struct schedule *s, uint64_t now_ns, uint64_t *missed);

/* Each session is a process of its own, and so is the detach of one that was killed. EXIT_NOT_ATTACHED if none came
 * about, else the worst of theirs. */
enum exit_status repeat_sessions(struct session *s);
