/* SPDX-License-Identifier: MIT */
#include "process/proc_status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/whole_io.h"

int proc_status_read(char text[STATUS_BYTES], pid_t pid, pid_t tid)
{
	char path[64];

	if (tid)
		snprintf(path, sizeof path, "/proc/%d/task/%d/status", pid, tid);
	else
		snprintf(path, sizeof path, "/proc/%d/status", pid);
	return whole_io_text(path, text, STATUS_BYTES);
}

const char *proc_status_field(const char *text, const char *name)
{
	size_t length = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, length) == 0 && line[length] == ':')
			return line + length + 1 + strspn(line + length + 1, " \t");
	}
	return NULL;
}

int64_t proc_status_number(const char *text, const char *name, int base, int64_t absent)
{
	const char *at = proc_status_field(text, name);

	return at ? (int64_t)strtoull(at, NULL, base) : absent;
}

void proc_status_copy(pid_t pid, const char *name, char *value, size_t size)
{
	char text[STATUS_BYTES];
	const char *at = proc_status_read(text, pid, 0) == 0 ? proc_status_field(text, name) : NULL;

	snprintf(value, size, "%.*s", at ? (int)strcspn(at, "\n") : 0, at ? at : "");
}
