/* SPDX-License-Identifier: MIT */
/*
 * --live: memanalyze shows the live heap while memattach records. It is a child of its own, so whatever becomes of what
 * reads and draws, the session goes on.
 *
 * The child (analyzer_child.h) gets the memory of the dump, to be read as it is at that moment, and the terminal. It
 * has no capability, can gain none by execve, has no network, writes to no file, and ends with memattach. Who holds a
 * terminal can type what its owner's shell then runs: so it is a user of its own whom nobody can take control of, and a
 * filter leaves it no system calls but those of drawing (rights_drop_to_view). What is dangerous to read, the target's
 * program files, is read by a process that can do nothing else (analyzer/debug_info/jail.h).
 *
 * Messages of the session wait until the view has given the terminal back.
 */
#pragma once

#include "session/session.h"

/* -EINVAL: there is no memanalyze beside memattach. To be asked before anything is done to the target. */
int live_child_check(const struct session *s, struct err *e) WARN_UNUSED;
/* After a failure the session goes on without. */
int live_child_start(struct session *s, struct err *e) WARN_UNUSED;
/* Whether the user has quit the view, which ends the session. One that has failed does not; what became of it is said.
 */
bool live_child_has_quit(struct session *s);
/* Ends it if it runs; then the terminal is as before, and what the session had to say is said. */
void live_child_end(struct session *s);
