/* SPDX-License-Identifier: MIT */
/* A library to be loaded late: allocates in known functions and checks what it holds. */
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

static unsigned char *kept[PLUGIN_BLOCKS];

__attribute__((noinline, noclone)) int plugin_keep(void)
{
	for (int i = 0; i < PLUGIN_BLOCKS; i++) {
		kept[i] = malloc(PLUGIN_BYTES);
		if (!kept[i])
			return -1;
		memset(kept[i], i + 1, PLUGIN_BYTES);
	}
	return 0;
}

__attribute__((noinline, noclone)) int plugin_drop(void)
{
	int wrong = 0;

	for (int i = 0; i < PLUGIN_BLOCKS; i++) {
		for (int k = 0; kept[i] && k < PLUGIN_BYTES; k++)
			wrong += kept[i][k] != (unsigned char)(i + 1);
		free(kept[i]);
		kept[i] = NULL;
	}
	return wrong;
}
