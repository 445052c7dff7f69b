/* SPDX-License-Identifier: MIT */
/*
 * Where an area of detours may lie: within reach of jumps from and to every byte of its module, in the gap of the
 * address space that is nearest below the module, else above it, and never where the heap or a stack grows to.
 *
 * The program's other threads go on while a place is chosen and taken, and the kernel gives them the highest gap that
 * has room, which is often the same. So after a place was taken, the next one lies in a gap with more and more room,
 * and that room is left above it.
 */
#ifndef MEMATTACH_DETOUR_PLACE_H
#define MEMATTACH_DETOUR_PLACE_H

#include "maps/maps.h"

/* For a module in [start, end), bytes of whole pages, after `taken` places that were taken meanwhile. 0: there is none.
 */
uint64_t detour_place(const struct maps *maps, uint64_t start, uint64_t end, uint64_t bytes, unsigned taken);

#endif
