/* SPDX-License-Identifier: MIT */
/*
 * Another address of a function, its alias: whoever calls it calls the function. It is no code of ours, so a copy of it
 * is right for as long as the program runs.
 *
 * A pointer is set to it (CODE_WORD of control.h) so that code which compares it with the function, and has that in
 * line where they are the same, calls: compilers make such code by a profile of the program.
 *
 *   x86-64   a nop which ends where the function begins. Functions are aligned, with nops between them; which
 *            instruction the bytes belong to does not matter
 *   aarch64  the same address with a tag, that is, another highest byte. Where Linux ignores tags of data
 *            (tagged-pointers.rst of its documentation) the processor removes that of an address that it branches to,
 *            so the program counter, and what is called there, is as ever, landing pads included. It is tried, in a
 *            child of memattach, on the machine that it is: a kernel could have the processor refuse tags of code
 *            alone
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FUNCTION_ALIAS_AROUND 9u /* bytes: the longest nop */

struct function_alias {
	uint64_t function;
	uint64_t address; /* 0: there is none; what the pointer holds: it leads to one already */
};

/* Where the code is that a pointer to a function leads to. */
uint64_t function_alias_place(uint64_t pointer);
/* around: so many bytes in front of that place, and as many from there on. */
struct function_alias function_alias_find(uint64_t pointer, const uint8_t around[2 * FUNCTION_ALIAS_AROUND]);
/* NULL, or why no pointer may be set to one on this machine. */
const char *function_alias_obstacle(void);
