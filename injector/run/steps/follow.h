/* SPDX-License-Identifier: MIT */
/* While a session lasts, see follow.c. */
#pragma once

#include "session/session.h"

/* Runs until the end of the session is asked for, or the target ends. */
enum session_end {
	SESSION_END_ASKED,  /* signal or duration: detach now */
	SESSION_END_EXITED, /* the target has ended; detail: exit status */
	SESSION_END_KILLED, /* detail: signal */
	SESSION_END_EXECED,
};
int follow_session(struct session *s, enum session_end *end, int *detail, struct err *e) WARN_UNUSED;
