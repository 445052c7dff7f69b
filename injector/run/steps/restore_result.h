/* SPDX-License-Identifier: MIT */
/* What became of the words that were to be restored. */
#pragma once

#include "session/session.h"

/*
 * Counts the GOT entries of the session by their states in the target, after patches_restore() and a new look at the
 * modules. What holds something else is named: in the residue if it may lead to a trampoline, else in the notes.
 * *foreign becomes true where a trampoline may still be called: by another tool, or by way of a page that was moved.
 */
int restore_result_count(struct session *s, bool *foreign, struct err *e) WARN_UNUSED;
