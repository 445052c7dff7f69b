/* SPDX-License-Identifier: MIT */
/*
 * Mappings that are never locked. A program may have asked for all that it maps to be locked (mlockall with
 * MCL_FUTURE): then a mapping of a gigabyte would be made resident at once, and counts against RLIMIT_MEMLOCK. So one
 * page without any access is mapped, which nothing can be read into, unlocked, and then enlarged, which leaves it
 * unlocked; access comes last.
 */
#pragma once

#include <stdint.h>

/* The address, or -errno. wanted: where it shall begin if that is free, 0: anywhere. flags and fd as for mmap; bytes
 * are whole pages. */
int64_t mapping_new(uint64_t wanted, uint64_t bytes, int protection, int flags, int fd);
/* Unlocks this image, which the loader has mapped: no page of it could be given back. */
void mapping_unlock_image(void);
