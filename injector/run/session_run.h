/* SPDX-License-Identifier: MIT */
/* One session, from the first look at the process to the reports: what main and its kin call. */
#pragma once

#include "host/exit_status.h"
#include "session/session.h"

/* What a parent of several sessions may do next with the process; the last two are of its children, and no errors. */
enum session_after {
	AFTER_NOTHING,
	AFTER_EXEC,            /* it has executed another program, which ended the session */
	AFTER_EXEC_UNATTACHED, /* it has executed another program while it was attached to: there was no session */
	AFTER_END_UNATTACHED,  /* it had ended before it was attached to */
};

struct session_result {
	enum exit_status status;
	enum session_after after;
};

/* A process that executes another program while it is attached to is attached to anew, as if it were another one. */
struct session_result session_run(struct session *s);
