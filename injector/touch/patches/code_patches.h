/* SPDX-License-Identifier: MIT */
/*
 * The jumps at the entries of allocation functions, and the words of CPython that lead to such functions
 * (python_functions.h), as they are listed in the payload, written and taken back. When and in which order: patches.h.
 *
 * Where the kernel has put a uprobe's breakpoint into a jump meanwhile, all else is taken back, and that left to it.
 * What is before the jump is never touched: most uprobes are there (entry_code.h).
 */
#pragma once

#include "prove/quiesce.h"
#include "session/session.h"

/* Adds the rows of session.hooks, whose detours are mapped, to the table of changes, and lists them in the payload. */
int code_patches_list(struct session *s, struct err *e) WARN_UNUSED;
/* Those of another memattach, as the payload lists them; nothing where the table has rows. After a failure it
 * has none, and this may be tried again. */
int code_patches_adopt(struct session *s, struct err *e) WARN_UNUSED;

struct code_patches_result {
	unsigned written;  /* jumps that were there */
	unsigned restored; /* functions whose entry is as it was before */
	unsigned foreign;  /* somebody else has changed it since: left alone, and what it may lead to must stay */
	struct word_counts words; /* of CPython. What somebody else has put there leads to nothing of ours */
};

/* The next two while all threads stand still. The islands, the jumps, and then the words. -EBUSY: something else is
 * there; nothing behind it was written. */
int code_patches_write(struct session *s, struct err *e) WARN_UNUSED;
/* The words and the jumps, each kind backwards, not the islands; adds to result->written and ->foreign. */
int code_patches_restore(struct session *s, struct code_patches_result *result, struct err *e) WARN_UNUSED;
/* Afterwards: adds to result->restored and ->words. */
void code_patches_count(const struct session *s, struct code_patches_result *result);

/* Where the islands are that hold their jump: at most max, SESSION_CODE_PATCH_MAX is enough. */
unsigned code_patches_islands(const struct session *s, struct address_range *ranges, unsigned max);
/* Takes them back. No jump leads there and no thread is there. */
int code_patches_remove_islands(struct session *s, struct err *e) WARN_UNUSED;
