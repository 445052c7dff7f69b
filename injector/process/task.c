/* SPDX-License-Identifier: MIT */
#include "process/task.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process/proc_status.h"
#include "files/whole_io.h"

/* Fields 3 and 23 of its stat (proc(5)): state and size of the memory. The command before them may hold anything but a
 * newline. */
bool task_has_memory(pid_t pid, pid_t tid)
{
	char path[64], text[1024], state;
	unsigned long long bytes;

	snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
	if (whole_io_text(path, text, sizeof text) < 0)
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
	char text[STATUS_BYTES];
	const char *numbers = proc_status_read(text, pid, tid) == 0 ? proc_status_field(text, "NSpid") : NULL;
	pid_t inner = 0;

	for (char *end; numbers && *numbers && *numbers != '\n'; numbers = end + (*end == '\t')) {
		inner = (pid_t)strtol(numbers, &end, 10);
		if (end == numbers)
			break;
	}
	return inner > 0 ? inner : tid;
}

/* The first thread for which it is true; 0: there is none. */
static pid_t task_find(pid_t pid, bool (*is)(void *arg, pid_t pid, pid_t tid), void *arg)
{
	char path[40];
	pid_t found = 0;

	snprintf(path, sizeof path, "/proc/%d/task", pid);
	DIR *dir = opendir(path);
	if (!dir)
		return 0;
	for (struct dirent *entry; !found && (entry = readdir(dir));) {
		pid_t tid = (pid_t)atoi(entry->d_name);
		if (tid > 0 && is(arg, pid, tid))
			found = tid;
	}
	closedir(dir);
	return found;
}

struct numbers {
	const int32_t *list;
	size_t count;
};

static bool has_number(void *arg, pid_t pid, pid_t tid)
{
	const struct numbers *n = arg;
	const pid_t inner = task_inner_tid(pid, tid);

	for (size_t i = 0; i < n->count; i++)
		if (n->list[i] == inner)
			return true;
	return false;
}

bool task_has_inner(pid_t pid, const int32_t *numbers, size_t count)
{
	struct numbers n = { numbers, count };

	return task_find(pid, has_number, &n) != 0;
}

static bool has_memory(void *arg, pid_t pid, pid_t tid)
{
	(void)arg;
	return task_has_memory(pid, tid);
}

pid_t task_alive(pid_t pid)
{
	return task_find(pid, has_memory, NULL);
}
