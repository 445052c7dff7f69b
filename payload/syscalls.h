/* SPDX-License-Identifier: MIT */
/* The system calls of the control functions. No hook makes any, but for that of mremap (map_hook.c). Results are those
 * of the kernel: -errno on failure. */
#pragma once

#include <stdint.h>

#include "arch/machine.h"

/* From linux/mman.h, which a freestanding program cannot take from the libc. */
#ifndef PROT_READ
#define PROT_NONE 0
#define PROT_READ 1
#define PROT_WRITE 2
#define PROT_EXEC 4
#define MAP_SHARED 1
#define MAP_PRIVATE 2
#define MAP_FIXED 0x10
#define MAP_ANONYMOUS 0x20
#define MREMAP_MAYMOVE 1
#define MADV_DONTNEED 4
#define MADV_DONTDUMP 16
#define MADV_WIPEONFORK 18
#define MADV_KEEPONFORK 19
#endif

static inline int64_t syscall_mmap(uint64_t address, uint64_t bytes, int protection, int flags, int fd, uint64_t offset)
{
	return arch_syscall(ARCH_SYS_MMAP, address, bytes, (uint64_t)protection, (uint64_t)flags, (uint64_t)fd, offset);
}

static inline int64_t syscall_munmap(uint64_t address, uint64_t bytes)
{
	return arch_syscall(ARCH_SYS_MUNMAP, address, bytes, 0, 0, 0, 0);
}

static inline int64_t syscall_mremap(uint64_t address, uint64_t bytes, uint64_t new_bytes, int flags)
{
	return arch_syscall(ARCH_SYS_MREMAP, address, bytes, new_bytes, (uint64_t)flags, 0, 0);
}

static inline int64_t syscall_munlock(uint64_t address, uint64_t bytes)
{
	return arch_syscall(ARCH_SYS_MUNLOCK, address, bytes, 0, 0, 0, 0);
}

static inline int64_t syscall_mprotect(uint64_t address, uint64_t bytes, uint64_t protection)
{
	return arch_syscall(ARCH_SYS_MPROTECT, address, bytes, protection, 0, 0, 0);
}

static inline int64_t syscall_madvise(const void *address, uint64_t bytes, int advice)
{
	return arch_syscall(ARCH_SYS_MADVISE, (uint64_t)address, bytes, (uint64_t)advice, 0, 0, 0);
}

/* Size of the file, or -errno. */
static inline int64_t syscall_file_size(int fd)
{
	uint64_t status[ARCH_STAT_BYTES / 8];
	int64_t result = arch_syscall(ARCH_SYS_FSTAT, (uint64_t)fd, (uint64_t)status, 0, 0, 0, 0);

	return result < 0 ? result : (int64_t)status[ARCH_STAT_SIZE_OFFSET / 8];
}
