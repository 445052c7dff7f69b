/* SPDX-License-Identifier: MIT */
/* What the dump says about the target: its modules, with their unwind tables, its threads, and its sys.path. */
#pragma once

#include "session/session.h"

/* Unwind rows of all modules of the view into the tables, and the coverage of the view; once for each view. */
int record_compile_rows(struct session *s, struct err *e) WARN_UNUSED;
/* … and an index over them, for the payload. */
int record_compile(struct session *s, struct err *e) WARN_UNUSED;
/* Says what is not seen, and notes it in the dump; _once: if this text was not said in that way before. */
int record_unseen(struct session *s, enum dump_note_kind kind, const char *text, struct err *e) WARN_UNUSED;
int record_unseen_once(struct session *s, enum dump_note_kind kind, const char *text, struct err *e) WARN_UNUSED;
/* Writes module records for ids from first_id on, with notes on what is not covered. */
int record_modules(struct session *s, uint32_t first_id, struct err *e) WARN_UNUSED;
/* Notes on what hooks that have been chosen anew do not see. */
int record_hooks(struct session *s, struct err *e) WARN_UNUSED;
/* Names of the threads that have no record yet; again: also of those that have another name now. */
int record_threads(struct session *s, bool again, struct err *e) WARN_UNUSED;
/* What sys.path of the Python has now and the dump has not yet, read while the target runs. Without it files have
 * longer names, no more; so nothing is refused for its sake. */
void record_paths(struct session *s);
