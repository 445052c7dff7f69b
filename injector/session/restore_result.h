/* SPDX-License-Identifier: MIT */
/* What became of the GOT entries that the payload was told to restore. */
#ifndef MEMATTACH_RESTORE_RESULT_H
#define MEMATTACH_RESTORE_RESULT_H

#include "session.h"

struct restore_result {
	bool escapes; /* a trampoline's address may have been copied */
	bool foreign; /* another tool may call a trampoline */
};

/*
 * Counts the GOT entries of the session by their states in the target, after CONTROL_RESTORE and a new look at the
 * modules. What holds something else is named: in the residue if it may lead to a trampoline, else in the notes.
 */
int restore_result_count(struct session *s, struct restore_result *after, struct err *e) WARN_UNUSED;

#endif
