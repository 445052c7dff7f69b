/* SPDX-License-Identifier: MIT */
/* Words of a plan that no relocation tells of: a table of functions that the program keeps in its data. */
#ifndef MEMATTACH_PLAN_WORDS_H
#define MEMATTACH_PLAN_WORDS_H

#include "got_plan.h"

/*
 * Adds a word to a finished plan; trampoline_flags: TRAMPOLINE_* of its trampoline. word->trampoline is chosen, and one
 * for the same function and original is used again. -E2BIG as got_plan_make(): the plan is as it was.
 */
int plan_words_add(struct got_plan *plan, const struct entry_plan *word, uint32_t trampoline_flags,
                   struct err *e) WARN_UNUSED;
/* Takes the entries of a group in a module out of the plan; how many there were. */
size_t plan_words_leave(struct got_plan *plan, uint32_t module, uint32_t group);

#endif
