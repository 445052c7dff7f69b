/* SPDX-License-Identifier: MIT */
/* Mappings that are never locked, see mapping.h. */
#include "mapping.h"

#include "payload.h"
#include "syscalls.h"

/* From the linker: this image. */
extern const uint8_t __ehdr_start[] HIDDEN;
extern const uint8_t _end[] HIDDEN;

int64_t mapping_new(uint64_t wanted, uint64_t bytes, int protection, int flags, int fd)
{
	int64_t page = syscall_mmap(wanted, PAGE_BYTES, PROT_NONE, flags, fd, 0), place, result;

	if (page < 0)
		return page;
	result = syscall_munlock((uint64_t)page, PAGE_BYTES);
	place = result < 0 ? result : syscall_mremap((uint64_t)page, PAGE_BYTES, bytes, MREMAP_MAYMOVE);
	if (place < 0) {
		syscall_munmap((uint64_t)page, PAGE_BYTES);
		return place;
	}
	result = syscall_mprotect((uint64_t)place, bytes, (uint64_t)protection);
	if (result < 0) {
		syscall_munmap((uint64_t)place, bytes);
		return result;
	}
	return place;
}

void mapping_unlock_image(void)
{
	uint64_t start = (uint64_t)__ehdr_start & ~(uint64_t)(PAGE_BYTES - 1);

	syscall_munlock(start, (uint64_t)_end - start);
}
