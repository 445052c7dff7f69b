/* SPDX-License-Identifier: MIT */
/*
 * The words of the target that are patched, as they are listed in the payload, written and given back. When and in
 * which order: patches.h.
 *
 * A word is written only if it holds exactly what is expected there, in memory of the same file as when it was planned;
 * and given back only if it holds our trampoline. So no lock of the loader is needed. A thread may stand still in the
 * middle of dlopen or dlclose: a library that is not relocated yet, or another one in the same place, holds something
 * else; one that is about to be unmapped does not care. A thread that stands still in the resolution of a lazy binding
 * writes the original over the trampoline afterwards: its calls are not seen, and there is nothing to give back.
 *
 * The words are written by /proc/PID/mem, which gives a private page its own copy and asks for no right to write: the
 * protection of the page (RELRO) is never changed.
 */
#pragma once

#include "session/session.h"

struct word_patches {
	struct got_entry *entries; /* sorted by module and address as far as they were planned together */
	uint32_t count;
	int *rows;      /* of the table of changes, one for each */
	uint32_t first; /* number of the first of them in the payload's list */
};

void word_patches_free(struct word_patches *w);

/* Lists the words of the plan of the view in the payload, after those that are there. */
int word_patches_list(struct session *s, struct word_patches *w, struct err *e) WARN_UNUSED;
/* No moment came in which they could be written: they are not listed any more. */
void word_patches_withdraw(struct session *s, const struct word_patches *w);
/* All that the payload lists. */
int word_patches_read(struct session *s, struct word_patches *w, struct err *e) WARN_UNUSED;

/* The next two while all threads stand still; their states go to the payload, too. A word that cannot be changed is no
 * error: its state tells. */
int word_patches_write(struct session *s, struct word_patches *w, struct err *e) WARN_UNUSED;
int word_patches_restore(struct session *s, struct word_patches *w, struct err *e) WARN_UNUSED;
/* After the write: counts them in the outcome. */
void word_patches_count(struct session *s, const struct word_patches *w);
