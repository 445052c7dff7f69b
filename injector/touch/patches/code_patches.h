/* SPDX-License-Identifier: MIT */
/*
 * The jumps at the entries of allocation functions, and the words of CPython that lead to such functions
 * (python_functions.h), as they are listed in the payload, written and taken back. When and in which order: patches.h.
 *
 * Where the kernel has put a uprobe's breakpoint into a jump meanwhile, all else is taken back, and that left to it.
 * What is before the jump is never touched: most uprobes are there (entry_code.h).
 */
#ifndef MEMATTACH_CODE_PATCHES_H
#define MEMATTACH_CODE_PATCHES_H

#include "prove/quiesce.h"
#include "session/session.h"

struct code_rows {
	struct code_patch list[SESSION_CODE_PATCH_MAX];
	unsigned count;
};

/* Makes the rows of session.hooks, whose detours are mapped, and lists them in the payload. */
int code_patches_list(struct session *s, struct code_rows *rows, struct err *e) WARN_UNUSED;
/* The rows that this memattach has made, or those that the payload lists. */
int code_patches_read(const struct session *s, struct code_rows *rows, struct err *e) WARN_UNUSED;

struct code_patches_result {
	unsigned written;  /* jumps that were there */
	unsigned restored; /* functions whose entry is as it was before */
	unsigned foreign;  /* somebody else has changed it since: left alone, and what it may lead to must stay */
	struct word_counts words; /* of CPython. What somebody else has put there leads to nothing of ours */
};

/* The next two while all threads stand still. The islands, the jumps, and then the words. -EBUSY: something else is
 * there; nothing behind it was written. */
int code_patches_write(struct session *s, const struct code_rows *rows, struct err *e) WARN_UNUSED;
/* The words and the jumps, not the islands; adds to result->written and ->foreign. */
int code_patches_restore(const struct session *s, const struct code_rows *rows, struct code_patches_result *result,
                         struct err *e) WARN_UNUSED;
/* Afterwards: adds to result->restored and ->words. */
void code_patches_count(const struct session *s, const struct code_rows *rows, struct code_patches_result *result);

/* Where the islands are that hold their jump: at most max, SESSION_CODE_PATCH_MAX is enough. */
unsigned code_patches_islands(const struct session *s, struct quiesce_range *ranges, unsigned max);
/* Takes them back. No jump leads there and no thread is there. */
int code_patches_remove_islands(const struct session *s, struct err *e) WARN_UNUSED;

#endif
