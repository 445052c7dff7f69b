/* SPDX-License-Identifier: MIT */
#include "task.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "whole_io.h"

/* Fields 3 and 23 of its stat (proc(5)): state and size of the memory. The command before them may hold anything but a
 * newline. */
bool task_has_memory(pid_t pid, pid_t tid)
{
	char path[64], text[1024], state;
	unsigned long long bytes;

	snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
	if (whole_text(path, text, sizeof text) < 0)
		return false;
	const char *rest = strrchr(text, ')');
	if (!rest ||
	    sscanf(rest, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %*u %llu",
	           &state, &bytes) != 2)
		return false;
	return state != 'Z' && state != 'X' && bytes != 0;
}

/* The last number of the line NSpid is that of the innermost namespace. */
pid_t task_inner_tid(pid_t pid, pid_t tid)
{
	char path[64], text[4096];

	snprintf(path, sizeof path, "/proc/%d/task/%d/status", pid, tid);
	if (whole_text(path, text, sizeof text) < 0)
		return tid;
	char *line = strstr(text, "\nNSpid:");
	if (!line)
		return tid;
	line[1 + strcspn(line + 1, "\n")] = '\0';
	const char *last = strrchr(line, '\t');
	return last && atoi(last) > 0 ? (pid_t)atoi(last) : tid;
}

pid_t task_alive(pid_t pid)
{
	char path[40];
	pid_t found = 0;

	snprintf(path, sizeof path, "/proc/%d/task", pid);
	DIR *dir = opendir(path);
	if (!dir)
		return 0;
	for (struct dirent *entry; !found && (entry = readdir(dir));) {
		pid_t tid = (pid_t)atoi(entry->d_name);
		if (tid > 0 && task_has_memory(pid, tid))
			found = tid;
	}
	closedir(dir);
	return found;
}
