/* SPDX-License-Identifier: MIT */
/*
 * Code that switches to another stack in inline assembler. After the instruction that sets the stack pointer the
 * compiler goes on counting the CFA from it, so the rows of that function are wrong there: on the new stack they lead
 * past its end. Such rows become UNWIND_UNSUPPORTED, from that instruction on as far as its call may be.
 *
 * The code is not disassembled: where instructions may begin, each may be one. Compilers set the stack pointer from
 * another register only where that is what the CFA counts from; a chance match costs the stacks that pass a call right
 * after it.
 */
#pragma once

#include "arch/stack_switch.h"
#include "unwind/unwind_compile.h"

#define STACK_SWITCH_REACH 32u

/* Reads the code of the module that rows are of. What cannot be read is taken to be harmless. -ENOMEM. */
int switch_rows_mark(struct unwind_rows *rows, const struct module_file *f, struct err *e) WARN_UNUSED;
/* The pure part: code is `at` bytes after where rows begin; its last STACK_SWITCH_BYTES - 1 bytes begin nothing.
 */
int switch_rows_mark_bytes(struct unwind_rows *rows, const uint8_t *code, size_t bytes, uint64_t at,
                           struct err *e) WARN_UNUSED;
