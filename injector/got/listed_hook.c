/* SPDX-License-Identifier: MIT */
#include "got/listed_hook.h"

#include <string.h>

static const struct {
	const char *symbol;
	uint8_t shape;
	uint8_t group;
} hooks[] = {
#define HOOK_ROW_(id, symbol, shape, size, group) { symbol, shape, group },
	HOOK_LIST(HOOK_ROW_)
#undef HOOK_ROW_
};

const char *listed_hook_symbol(uint32_t hook)
{
	return hook < HOOK_COUNT ? hooks[hook].symbol : "?";
}

unsigned listed_hook_shape(uint32_t hook)
{
	return hook < HOOK_COUNT ? hooks[hook].shape : SHAPE_FREE;
}

unsigned listed_hook_group(uint32_t hook)
{
	return hook < HOOK_COUNT ? hooks[hook].group : GROUP_MALLOC;
}

bool listed_hook_allocates(uint32_t hook)
{
	return listed_hook_shape(hook) == SHAPE_ALLOC || listed_hook_shape(hook) == SHAPE_OUT;
}

bool listed_hook_frees(uint32_t hook)
{
	return listed_hook_shape(hook) == SHAPE_FREE;
}

uint32_t listed_hook_by_symbol(const char *name)
{
	/* Most names of a C++ library begin with _ZN: dismiss them before any comparison of strings. */
	if (name[0] == '_' && (name[1] != 'Z' || (name[2] != 'n' && name[2] != 'd')))
		return HOOK_COUNT;
	for (uint32_t i = 0; i < HOOK_COUNT; i++)
		if (hooks[i].symbol[0] == name[0] && hooks[i].group < GROUP_PYTHON && !strcmp(hooks[i].symbol, name))
			return i;
	return HOOK_COUNT;
}

bool listed_hook_throws(uint32_t hook)
{
	return hook == HOOK_new || hook == HOOK_new_array || hook == HOOK_new_aligned || hook == HOOK_new_array_aligned;
}
