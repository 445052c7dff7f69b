/* SPDX-License-Identifier: MIT */
/*
 * The code of CPython's evaluator: _PyEval_EvalFrameDefault, by its symbol, and the parts that the compiler has put
 * elsewhere because they seldom run. These have a description of their own in .eh_frame, and in stripped programs no
 * name. What tells them: the function jumps into the middle of one, and nobody jumps into the middle of another
 * function; or it jumps to the beginning of one whose description begins with a frame that is there already. A jump to
 * the beginning of anything else is a call at the end of the function.
 */
#pragma once

#include "dump_format.h"
#include "elf/elf_module.h"

#define EVALUATOR_SYMBOL "_PyEval_EvalFrameDefault"
#define EVALUATOR_BYTES_MAX (1u << 20) /* of its largest part; those of releases have some 60 KiB */

/* Fills list[DUMP_EVALUATORS], as many as there are, at least the function itself if it has a symbol. What cannot be
 * read is not there. Charged to the budget of tm. */
void evaluator_code_find(struct dump_evaluator *list, const struct elf_module *m, const struct target_memory *tm,
                         const struct maps *maps);
