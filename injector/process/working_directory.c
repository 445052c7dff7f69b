/* SPDX-License-Identifier: MIT */
#include "process/working_directory.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool read_link(const struct target *t, const char *name, char text[WORKING_DIRECTORY_TEXT])
{
	static const char deleted[] = " (deleted)";
	char path[80];

	snprintf(path, sizeof path, "/proc/%d/task/%d/%s", t->pid, t->tid, name);
	ssize_t n = readlink(path, text, WORKING_DIRECTORY_TEXT);
	if (n <= 0 || n == WORKING_DIRECTORY_TEXT || text[0] != '/')
		return false;
	text[n] = '\0';
	size_t end = sizeof deleted - 1;
	return (size_t)n < end || strcmp(text + n - end, deleted) != 0;
}

/* Of a target in another mount namespace both paths begin at the root of that one. */
void working_directory_read(const struct target *t, char text[WORKING_DIRECTORY_TEXT])
{
	char root[WORKING_DIRECTORY_TEXT];

	bool known = read_link(t, "root", root) && read_link(t, "cwd", text);
	size_t n = known && strcmp(root, "/") != 0 ? strlen(root) : 0;
	if (!known || strncmp(text, root, n) != 0 || (n && text[n] && text[n] != '/'))
		text[0] = '\0';
	else if (n)
		memmove(text, text[n] ? text + n : "/", strlen(text[n] ? text + n : "/") + 1);
}
