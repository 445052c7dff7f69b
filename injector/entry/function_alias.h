/* SPDX-License-Identifier: MIT */
/*
 * Another address of a function: that of a nop which ends where the function begins. Whoever calls it calls the
 * function. It belongs to the program, so a copy of it is right for as long as the program runs.
 *
 * A pointer is set to it (CODE_WORD of control.h) so that code which compares it with the function, and has that in
 * line where they are the same, calls: compilers make such code by a profile of the program. Functions are aligned,
 * with nops between them; which instruction the bytes belong to does not matter.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FUNCTION_ALIAS_MAX 9u /* bytes of a nop */

/* How many bytes the nop has that ends with the bytes, 0: none does. */
unsigned function_alias_before(const uint8_t *before, size_t bytes);
/* How many bytes of nops the bytes begin with. */
unsigned function_alias_skip(const uint8_t *code, size_t bytes);
