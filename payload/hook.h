/* SPDX-License-Identifier: MIT */
/* What hook.c does for the hooks of mappings (map_hook.c). */
#pragma once

#include "hook_call.h"

/* Calls the original. */
uint64_t hook_original(const struct hook_call *call);
/* Records the new block of a sampled call. Out of line: its frames are not on the stack while the original runs. */
void hook_record_block(const struct hook_call *call, uint64_t block, uint64_t size, uint32_t rate);
