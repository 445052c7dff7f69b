/* SPDX-License-Identifier: MIT */
/*
 * The slow path of mmap, munmap and mremap. Nearly all calls come here: what they change is a range, of whatever
 * mappings were made before (mappings.h), which no filter of addresses knows.
 *
 * A mapping with a descriptor is one of a file: also of a memfd, of shared memory of POSIX, of a device, and of
 * /dev/zero. Which of these it is only the kernel could say. One that mremap makes is what the old one was.
 *
 * What goes is taken out before the original runs, since another thread may get the place before it returns; where
 * something is replaced (MAP_FIXED, MREMAP_FIXED), or grows in place, afterwards, because the place stays the caller's
 * and the call may fail. What munmap and mremap take is put back if they fail; after mremap the kernel is asked what is
 * still there. A munmap of more than AWAY_MAX mappings that fails leaves the others out, which is counted
 * (lost_mappings).
 * Several mappings that are moved as they are stay what they were, with the gaps between; more than AWAY_MAX are one of
 * the kind of the first.
 * Of a part that goes the record keeps what is left, as a part of what was sampled (DUMP_LIVE_PART).
 *
 * What nobody has seen made was there before the session: it is a file's if it was one when memattach looked
 * (UNWIND_RANGE_FILE), else memory.
 *
 * Two threads that change one range at once, an error of the program's, cannot do harm: each record and each entry is
 * in the hands of one of them. Figures may be wrong then: what one has taken it puts back, or not, by what the kernel
 * says to its own call, and a third thread may have the place already.
 *
 * What is still known where a new mapping comes without having been asked to replace anything has gone unseen.
 */
#pragma once

#include "hook_call.h"

#ifdef MEMATTACH_HOSTED
extern int64_t (*map_hook_ask)(uint64_t page); /* -EFAULT: nothing is mapped there */
#endif

uint64_t map_hook_map(struct hook_call *call);
uint64_t map_hook_unmap(struct hook_call *call);
uint64_t map_hook_remap(struct hook_call *call);
