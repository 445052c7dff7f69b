/* SPDX-License-Identifier: MIT */
/* A library that comes and goes. */
#include <stdlib.h>
#include <string.h>

char *plugin_copy(const char *text);
char *plugin_copy(const char *text)
{
	char *copy = malloc(strlen(text) + 1);

	return copy ? strcpy(copy, text) : NULL;
}

void plugin_drop(char *text);
void plugin_drop(char *text)
{
	free(text);
}
