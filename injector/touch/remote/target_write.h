/* SPDX-License-Identifier: MIT */
/*
 * Writing to the memory of the target, also to its read-only pages (padding of code). Kernels may allow that only to
 * the tracer of the process (proc_mem.force_override=ptrace), so one of its threads must be seized.
 */
#ifndef MEMATTACH_TARGET_WRITE_H
#define MEMATTACH_TARGET_WRITE_H

#include "process/target_memory.h"

struct target_writer {
	int fd; /* /proc/PID/mem, -1 closed */
};

int target_writer_open(struct target_writer *w, pid_t tid, struct err *e) WARN_UNUSED;
void target_writer_close(struct target_writer *w);
/* Writes exactly bytes or fails. */
int target_write(const struct target_writer *w, uint64_t address, const void *data, size_t bytes,
                 struct err *e) WARN_UNUSED;

#endif
