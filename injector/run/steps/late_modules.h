/* SPDX-License-Identifier: MIT */
/*
 * Modules that come and go while a session lasts: their ids, unwind tables, records in the dump, and the GOT entries
 * that they bring with them.
 *
 * These may fail to be patched: another tracer has a thread, one does not stop in time, a word has changed since it was
 * looked at. Then it is tried again, after 1, 2, 4, 8 and 16 seconds, and where another module comes or goes. If the
 * second try fails, too, a line and a note of the dump say that something is not seen, and another line once it is.
 */
#pragma once

#include "session/session.h"

struct late_modules {
	struct session *s; /* NULL: none is looked for yet */
	uint32_t watched;  /* of session_entries_watch */
	unsigned tries;    /* that have failed, one after the other; 0: nothing is to be tried again */
	uint64_t next_ns;  /* then, the next one */
	uint32_t missing;  /* GOT entries, at the last one; 0: it did not come so far */
	struct err why;
	bool said; /* that something is not seen */
};

int late_modules_begin(struct late_modules *l, struct session *s, struct err *e) WARN_UNUSED;
/* < 0: the list of modules cannot be read now, or something in them is not seen. */
int late_modules_poll(struct late_modules *l, uint64_t now_ns);
/* The session is at its end: what is not seen yet will not be. */
void late_modules_end(struct late_modules *l);
