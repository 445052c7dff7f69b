/* SPDX-License-Identifier: MIT */
#include "host/cgroup_number.h"

#include <stdio.h>
#include <stdlib.h>

#include "files/whole_io.h"

bool cgroup_number(const char *directory, const char *name, uint64_t *value)
{
	char path[800], text[64], *end;

	if ((size_t)snprintf(path, sizeof path, "%s/%s", directory, name) >= sizeof path ||
	    whole_io_text(path, text, sizeof text) < 0)
		return false;
	*value = strtoull(text, &end, 10);
	return end != text;
}
