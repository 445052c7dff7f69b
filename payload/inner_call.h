/* SPDX-License-Identifier: MIT */
/*
 * Is a call made by another hooked function, for the same block (TRAMPOLINE_OUTER)? By the mark of the outer call in
 * the thread's state, by what the stack holds where it was, and by a walk; hook.c says why all three.
 */
#ifndef MEMATTACH_PAYLOAD_INNER_CALL_H
#define MEMATTACH_PAYLOAD_INNER_CALL_H

#include <stdbool.h>

#include "hook_call.h"

bool inner_call_is(const struct hook_call *call);

#endif
