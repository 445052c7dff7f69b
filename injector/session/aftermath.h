/* SPDX-License-Identifier: MIT */
/* What became of the slots that the payload was told to restore. */
#ifndef MEMATTACH_AFTERMATH_H
#define MEMATTACH_AFTERMATH_H

#include "session.h"

struct aftermath {
	bool escapes; /* a gate's address may have been copied */
	bool foreign; /* another tool may call a gate */
};

/*
 * Counts the slots of the session by their states in the target, after CONTROL_RESTORE and a new look at the modules.
 * What holds something else is named: in the residue if it may lead to a gate, else in the notes.
 */
int aftermath_count(struct session *s, struct aftermath *after, struct err *e) WARN_UNUSED;

#endif
