/* SPDX-License-Identifier: MIT */
/*
 * Detours: where jumps at the entries of functions lead (struct detour_area of control.h).
 *
 *     entry --jump-> detour -- sampled, or undecided --> trampoline --> hook
 *                      |                                                  |
 *                      v  not sampled                                     |
 *     behind the displaced <-jump-- their copy, in the detour <-----------+
 *
 * A jump at an entry and the operands of the copied instructions do not reach far (ENTRY_REACH), so each module that
 * has hooked functions gets an area near it (detour_place()). The area is a mapping of the payload's file, so that what
 * is left of one is seen by its file; its bytes are written by memattach.
 */
#pragma once

#include "touch/patches/loan.h"

/* Places and maps the areas of all entry hooks, from descriptor payload_fd of the target: after CONTROL_START, before
 * CONTROL_PATCH. Adds their trampolines to the plan. */
int detours_map(struct loan *l, int payload_fd, struct err *e) WARN_UNUSED;

/* Areas of a session as its block names them that are mappings of the payload's file now: the others may be anything.
 */
unsigned detours_list(const struct session *s, struct detour_area areas[SESSION_DETOUR_AREAS]);

/*
 * Where an area of detours may lie: within reach of jumps from and to every byte of its module, in the gap of the
 * address space that is nearest below the module, else above it, and never where the heap or a stack grows to.
 *
 * The program's other threads go on while a place is chosen and taken, and the kernel gives them the highest gap that
 * has room, which is often the same. So after a place was taken, the next one lies in a gap with more and more room,
 * and that room is left above it.
 *
 * For a module in [start, end), bytes of whole pages, after `taken` places that were taken meanwhile. 0: there is
 * none.
 */
uint64_t detour_place(const struct maps *maps, uint64_t start, uint64_t end, uint64_t bytes, unsigned taken);
