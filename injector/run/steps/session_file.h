/* SPDX-License-Identifier: MIT */
/* The dump on disk, as a session has it: its name, its copies, and what is said about them. dump_file.h does the work.
 */
#pragma once

#include "session/session.h"

/* For who attaches later: -EEXIST if the name of -o is taken now; -ENOTDIR: it must be a directory. */
int session_file_check(const struct session_options *options, struct err *e) WARN_UNUSED;
/*
 * Takes the name of -o, or makes one, in the directory that -o names or the current one, and writes a first copy: what
 * cannot be written at all is found out before anything is touched. -EEXIST, -ENOSPC and others.
 */
int session_file_create(struct session *s, struct err *e) WARN_UNUSED;
/* Once a tick: copies when they are due. What fails is said once, and when it works again. */
void session_file_tick(struct session *s);
/* The last copy, when nothing records any more; a signal that a user sends while it is written gives it up, that of a
 * --detach does not. -errno: the file is an older copy, e says why and until when. */
int session_file_finish(struct session *s, struct err *e) WARN_UNUSED;
/*
 * Saves the recording of a session whose memattach died, before it is unmapped: to -o of --detach, or to a name that is
 * made; said. -errno: it cannot be written to the -o that was asked for, and stays in the process. Without one, what
 * cannot be saved is lost, and s->unsaved tells it.
 */
int session_file_save(struct session *s, struct err *e) WARN_UNUSED;
