/* SPDX-License-Identifier: MIT */
/* What include/hooks.h says about each hook, as a table. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hooks.h"

const char *listed_hook_symbol(uint32_t hook); /* "malloc", "_Znwm"; "?" if out of range */
unsigned listed_hook_shape(uint32_t hook);     /* SHAPE_* */
unsigned listed_hook_group(uint32_t hook);     /* GROUP_* */
bool listed_hook_allocates(uint32_t hook);     /* SHAPE_ALLOC or SHAPE_OUT */
bool listed_hook_frees(uint32_t hook);         /* SHAPE_FREE */
bool listed_hook_throws(uint32_t hook);        /* operator new but for the nothrow ones */
/* HOOK_COUNT if it is not on the list, or of GROUP_PYTHON and above, which are never found by name. */
uint32_t listed_hook_by_symbol(const char *name);
