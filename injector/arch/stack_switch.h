/* SPDX-License-Identifier: MIT */
/*
 * Code that switches to another stack in inline assembler (unwind/switch_rows.h): the instruction that sets the stack
 * pointer from another register.
 *
 *   STACK_SWITCH_BYTES  of the instruction
 *   STACK_SWITCH_STEP   instructions begin at multiples of it
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#define STACK_SWITCH_BYTES 3u
#define STACK_SWITCH_STEP 1u
#elif defined(__aarch64__)
#define STACK_SWITCH_BYTES 4u
#define STACK_SWITCH_STEP 4u
#else
#error "memattach does not know how this architecture sets the stack pointer"
#endif

bool stack_switch_at(const uint8_t code[STACK_SWITCH_BYTES]);
