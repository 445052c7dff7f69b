/* SPDX-License-Identifier: MIT */
#include "plain_name.h"

#include <demangle.h>
#include <stdlib.h>
#include <string.h>

/* Longer ones are cut by nobody's eye and cost the demangler time without bound. */
#define NAME_MAX_BYTES 16384u

char *plain_name(const char *name)
{
	char *plain = NULL;

	if (name[0] == '_' && strnlen(name, NAME_MAX_BYTES) < NAME_MAX_BYTES)
		plain = cplus_demangle(name, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
	return plain ? plain : strdup(name);
}
