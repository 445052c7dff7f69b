/* SPDX-License-Identifier: MIT */
/* What include/hooks.h says about each hook, as a table. */
#ifndef MEMATTACH_HOOK_NAMES_H
#define MEMATTACH_HOOK_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "hooks.h"

const char *hook_symbol(uint32_t hook); /* "malloc", "_Znwm"; "?" if out of range */
unsigned hook_shape(uint32_t hook);     /* SHAPE_* */
unsigned hook_group(uint32_t hook);     /* GROUP_* */
bool hook_allocates(uint32_t hook);     /* SHAPE_ALLOC or SHAPE_OUT */
bool hook_frees(uint32_t hook);         /* SHAPE_FREE */
bool hook_throws(uint32_t hook);        /* operator new but for the nothrow ones */
/* HOOK_COUNT if it is not on the list, or of GROUP_PYTHON and above, which are never found by name. */
uint32_t hook_by_symbol(const char *name);

#endif
