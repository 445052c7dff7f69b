/* SPDX-License-Identifier: MIT */
/* A session in a process of its own: how it begins there, and what its end means for a memattach that runs several. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "run/session_run.h"

/* What became of a session: an exit status up to EXIT_DUMP, or more. */
enum member_outcome {
	OUTCOME_DONE = EXIT_DONE,
	OUTCOME_NOT_ATTACHED = EXIT_NOT_ATTACHED,
	OUTCOME_RESIDUE = EXIT_RESIDUE,
	OUTCOME_UNSAVED = EXIT_DUMP,
	OUTCOME_KILLED,
	OUTCOME_TOO_LATE, /* its process had ended, or executed another program, before it was attached to */
	OUTCOMES
};

/*
 * Runs session there, whose result is its exit status. It gets the terminal's signals from this process alone, and
 * SIGTERM when this process dies. Its number, or -1 with errno.
 */
pid_t session_process_begin(int (*session)(void *context), void *context);
/* Of what waitpid() tells, and of what the session said itself. */
enum member_outcome session_process_outcome(int status, enum session_after after);
/* " 2 done, 1 not attached": how many there are of each. */
void session_process_sum(const unsigned counts[OUTCOMES], char *text, size_t size);
/* The worst exit status: 2 (also of one that was killed) before 3 before 1 before 0. */
enum exit_status session_process_worst(const unsigned counts[OUTCOMES]);
