/* SPDX-License-Identifier: MIT */
/*
 * The slow path of mmap, munmap and mremap. Nearly all calls come here: what they change is a range, of whatever
 * mappings were made before (mappings.h), which no filter of addresses knows.
 *
 * A mapping with a descriptor is one of a file: also of a memfd, of shared memory of POSIX, of a device, and of
 * /dev/zero. Which of these it is only the kernel could say. One that mremap makes is what the old one was.
 *
 * What goes is taken out before the original runs, since another thread may get the place before it returns; where
 * something is replaced (MAP_FIXED, MREMAP_FIXED), afterwards, because the place stays the caller's and the call may
 * fail. Of a part that goes the record keeps what is left, at the same probability: size and rate shrink alike.
 *
 * What is still known where a new mapping comes without having been asked to replace anything has gone unseen.
 */
#pragma once

#include "hook_call.h"

uint64_t map_hook_map(struct hook_call *call);
uint64_t map_hook_unmap(struct hook_call *call);
uint64_t map_hook_remap(struct hook_call *call);
