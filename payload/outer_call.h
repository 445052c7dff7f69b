/* SPDX-License-Identifier: MIT */
/*
 * Functions that pass on to others that are hooked, too (TRAMPOLINE_OUTER: realloc of a null pointer calls malloc). The
 * outer call counts, the inner one does not.
 *
 * The outer hook notes where it is while the original runs. A call that comes from little below is an inner one if the
 * stack still holds the outer call's return address and a walk comes to the code of the payload: the program may have
 * left the original by an exception or siglongjmp(), or ended the thread. What an inner call has subtracted from the
 * interval is no loss: it draws a new one as every sample does, and leaves it at that. The points of a Poisson process
 * over all bytes, those of the outer calls alone taken, are one over those bytes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hook_call.h"
#include "trampolines.h"

typedef uint64_t (*original_function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

/* Calls the original as the program did. */
static inline uint64_t outer_call_pass_on(const struct hook_call *call)
{
	const uint64_t *a = call->arguments;
	original_function original = (original_function)call->trampoline->original;

	return __builtin_expect(call->keeps, 0) ? hook_call_keeping(call)
	                                        : original(a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* The same for a function that passes on, with a note of it. */
uint64_t outer_call_make(const struct hook_call *call) __attribute__((visibility("hidden")));
/* Is this an inner call? */
bool outer_call_holds(const struct hook_call *call) __attribute__((visibility("hidden")));
