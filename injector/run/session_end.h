/* SPDX-License-Identifier: MIT */
/* How a step or a session ended, and what is said of it. */
#pragma once

#include "host/exit_status.h"
#include "session/session.h"

enum session_life { SESSION_GOES_ON, SESSION_HAS_ENDED, SESSION_HAS_EXECED };

void session_end_complain(const struct session *s, const struct err *e);
/*
 * What became of the process, and whether a step that came to rc failed because of that. Threads end one after the
 * other, and the memory of a new program is there before what tells it from the old one; so there is a moment given
 * until either is seen.
 */
enum session_life session_life_after(const struct session *s, int rc);
/* After a detach: says how it went, and what had to stay. */
enum exit_status session_end_tell_detached(struct session *s);
