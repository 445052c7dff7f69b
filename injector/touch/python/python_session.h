/* SPDX-License-Identifier: MIT */
/*
 * The Python of a session: finds CPython in the target, proves how it is laid out, and finds the code of its evaluator,
 * all from outside, while the target runs. What the payload is told is in s->python afterwards.
 *
 * The payload reads the interpreter's variables at each sample, so they must stay mapped as long as the process lives:
 * an interpreter in a library that the program has opened by dlopen, and may close, is passed over. One that is loaded
 * during the session is not looked for.
 *
 * Nothing can be proved where no thread runs Python code: in a program that has just begun, or a server that waits in
 * code of its own. Such a one is looked at again during the session, until it can be proved.
 */
#pragma once

#include "session/session.h"

/* Needs the modules and maps of the view. Never fails: what does not succeed is a line in s->python.notes. It takes a
 * second or two at most, for a target that changes under each look, or wants it to. */
void python_session_find(struct session *s);
/* During the session. Returns when to call it next, in the time of clock_monotonic_ns(); UINT64_MAX: none is awaited.
 */
uint64_t python_session_await(struct session *s);
/* Notes that one is awaited, once after a while, and at the end that it was in vain. */
void python_session_miss(struct session *s, bool ended);
