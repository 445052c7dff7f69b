/* SPDX-License-Identifier: MIT */
/*
 * Places in the code through which hooked calls go, as memattach and the payload must agree on them: in trampolines
 * (trampolines.h) and in detours (struct detour_area of control.h). They differ from machine to machine; the assembler
 * checks those in trampolines, detour_code_make() fills those in detours.
 *
 *   TRAMPOLINE_CODE_BYTES    of the code of one trampoline
 *   TRAMPOLINE_ALLOCATE, ... entrances, from the start of a trampoline's code
 *   TRAMPOLINE_BELOW         no entrance: for a detour that has subtracted, and is below 0
 *   TRAMPOLINE_KEPT_FIRST, TRAMPOLINE_KEPT_SECOND
 *                            where the caller's values of the two registers are that a detour with TRAMPOLINE_KEEPS
 *                            uses, from the stack pointer as it is at the entry of the function; not there where a
 *                            call may always change those that it uses
 *   DETOUR_BYTES             of one detour
 *   DETOUR_COPY, DETOUR_KEEPING_COPY, DETOUR_KEEPING_RESUME
 *                            in a detour: the copy of the displaced instructions, without and with TRAMPOLINE_KEEPS,
 *                            and what leads to the latter
 *   FILTER_SHIFT             the first counter of an address: bits from this one on of the product with the filter's
 *                            multiplier, masked
 *
 * The assembler reads this file too.
 */
#pragma once

#if defined(__x86_64__)
#include "arch/x86_64/hook_code.h"
#elif defined(__aarch64__)
#include "arch/aarch64/hook_code.h"
#else
#error "memattach hooks nothing on this architecture yet"
#endif
