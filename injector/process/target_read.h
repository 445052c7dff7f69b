/* SPDX-License-Identifier: MIT */
/*
 * Reading the memory of the target while it runs. Nothing here writes, stops or traces.
 *
 * Reads use /proc/PID/mem, and what that does not have, or where it is not open, process_vm_readv(2). Not the other way
 * round: that pins pages, and so the kernel copies each page that the target shares with one that it was forked from,
 * or has forked (FAULT_FLAG_UNSHARE, since Linux 5.19). A look at a worker would make it as large as its master.
 * Contents may change between two reads: callers check what they read.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/budget.h"

struct target_memory {
	pid_t pid;     /* a thread of the target whose number stays its own; 0: none, then only mem_fd is used */
	pid_t process; /* whose threads come and go; 0: pid does not end */
	int mem_fd;    /* /proc/PID/mem, read-only; -1: none, then only process_vm_readv is used */
	struct budget *budget; /* what reads are charged to; NULL: none */
};

/* The same memory, its reads charged to a budget. */
static inline struct target_memory target_memory_charged(const struct target_memory *tm, struct budget *budget)
{
	struct target_memory charged = *tm;

	charged.budget = budget;
	return charged;
}

/* Opens /proc/PID/mem. -ESRCH: no such thread; -EACCES, -EPERM: not permitted. */
int target_memory_open(struct target_memory *tm, pid_t pid, struct err *e) WARN_UNUSED;
/* A thread whose files in /proc tell of the process now; 0: none was found. */
pid_t target_memory_thread(const struct target_memory *tm);
void target_memory_close(struct target_memory *tm);

/*
 * Reads exactly bytes. -EFAULT: not all of it is mapped; -ESRCH: the target is gone; -E2BIG: beyond the budget. The
 * buffer is then undefined.
 */
int target_read(const struct target_memory *tm, uint64_t address, void *buffer, size_t bytes,
                struct err *e) WARN_UNUSED;
int target_read_u64(const struct target_memory *tm, uint64_t address, uint64_t *value, struct err *e) WARN_UNUSED;

/* Reads a NUL-terminated string into buffer[size]. -ENAMETOOLONG: no NUL within size bytes. */
int target_read_string(const struct target_memory *tm, uint64_t address, char *buffer, size_t size,
                       struct err *e) WARN_UNUSED;

/* Reads many pieces with as few system calls as possible (1024 pieces a call). All or -errno. */
struct target_piece {
	uint64_t address;
	size_t bytes;
	void *buffer;
};
int target_read_batch(const struct target_memory *tm, const struct target_piece *pieces, size_t count,
                      struct err *e) WARN_UNUSED;
