/* SPDX-License-Identifier: MIT */
/*
 * A stack as it is shown: without the frames that say nothing about who holds memory.
 *
 * - At the inner end those of the allocator go, up to the first function that is none: functions that are named so or
 *   given by --alloc-fn, the standard library's, and functions without a name that are met as the innermost one below
 *   many callers in their own module, or that stand between such.
 * - Below a line of Python native frames become one, that of the package; below a line of Java, those of the JDK and
 *   native ones.
 * - Further out, several frames of the standard library in a row become one, so do those of V8, and of code without
 *   a name that the process has made.
 *
 * With options.show_std, or without symbols, every frame is shown. If nothing would be left, so is the innermost.
 */
#pragma once

#include "report/report.h"

struct folded_frame {
	uint64_t place;
	const struct location *location;
	uint32_t frame; /* index in the row's, of the innermost one that it stands for */
	uint32_t count; /* frames of which it is one; 1: it is the function itself */
	char name[64];  /* if count > 1, or of a package */
	bool package;   /* native frames, called by the frame behind it in the list */
};

/* The innermost frame first. All zero at first, used again for each row. */
struct folded_stack {
	struct folded_frame *list;
	size_t count;
};

/* As many frames as report_depth() says; those of start-up are from report_inner(row) on. -ENOMEM. */
int folded_stack_make(struct folded_stack *stack, const struct report *report,
                      const struct report_row *row) WARN_UNUSED;
void folded_stack_done(struct folded_stack *stack);

/* What makes a function one that may be folded: "allocator", "standard", "startup"; NULL: nothing does. */
const char *folding_kind(const struct report *report, uint64_t place, const struct location *location);

/* Finds the functions without a name that many callers have; for report_finish. -ENOMEM. */
int folding_find_shared(struct report *report) WARN_UNUSED;
