/* SPDX-License-Identifier: MIT */
/* What ptrace gives and takes of a stopped thread. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

#define VECTORS_LIVE 1u /* of struct user_sve_header: the registers are those of SVE, not those below them */

/* A set of registers, by the kernel's name for it (NT_* of <elf.h>). False: errno says why. */
static inline bool traced_get_set(pid_t tid, int what, void *to, size_t bytes)
{
	struct iovec iov = { to, bytes };

	return ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)what, &iov) == 0 && iov.iov_len == bytes;
}

static inline bool traced_put_set(pid_t tid, int what, void *from, size_t bytes)
{
	struct iovec iov = { from, bytes };

	return ptrace(PTRACE_SETREGSET, tid, (void *)(uintptr_t)what, &iov) == 0;
}

/* The instruction that stands there; 0: it cannot be read. */
static inline uint32_t traced_instruction(pid_t tid, uint64_t at)
{
	errno = 0;
	const long word = ptrace(PTRACE_PEEKTEXT, tid, (void *)(uintptr_t)at, NULL);
	return errno ? 0 : (uint32_t)word;
}
