/* SPDX-License-Identifier: MIT */
/*
 * Writing to the memory of the target, also to its read-only pages (padding of code). Kernels may allow that only to
 * the tracer of the process (proc_mem.force_override=ptrace), so one of its threads must be seized.
 *
 * Nothing is written that is not in the table of changes (changes.h).
 */
#pragma once

#include "process/target_read.h"
#include "touch/changes.h"

struct target_writer {
	int fd; /* /proc/PID/mem, -1 closed */
	struct changes *changes;
};

void target_writer_close(struct target_writer *w);
/* The next three write exactly all bytes, or fail. */
/* Into memory of ours. -EPERM: the table has none of that kind in force. */
int target_write(const struct target_writer *w, enum change_kind ours, uint64_t address, const void *data, size_t bytes,
                 struct err *e) WARN_UNUSED;
/* Makes a change that is listed, and marks it. */
int target_writer_change(const struct target_writer *w, int row, struct err *e) WARN_UNUSED;
/* Undoes it. instead: what is written in the place of the old bytes, NULL: they are. */
int target_writer_undo(const struct target_writer *w, int row, const void *instead, struct err *e) WARN_UNUSED;
/* Adds a change of bytes and makes it. Returns the row. */
int target_writer_add_change(const struct target_writer *w, enum change_kind kind, uint64_t address, const void *old,
                             const void *new, unsigned bytes, struct err *e) WARN_UNUSED;
