/* SPDX-License-Identifier: MIT */
#include "process/task.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process/proc_stat.h"
#include "process/proc_status.h"
#include "files/whole_io.h"

/*
 * Fields 3 and 23 of its stat (proc(5)): state and size of the memory. The command before them may hold anything but a
 * newline. 1: it has some; 0: it has none; -errno: that could not be read.
 */
static int look_for_memory(void *unused, pid_t pid, pid_t tid)
{
	char path[64], text[1024], state;
	unsigned long long bytes;

	(void)unused;
	snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
	const int rc = whole_io_text(path, text, sizeof text);
	if (rc < 0)
		return proc_stat_has_gone(rc) ? 0 : rc;
	const char *rest = strrchr(text, ')');
	if (!rest ||
	    sscanf(rest, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %*u %llu",
	           &state, &bytes) != 2)
		return 0;
	return state != 'Z' && state != 'X' && bytes != 0;
}

bool task_has_memory(pid_t pid, pid_t tid)
{
	return look_for_memory(NULL, pid, tid) > 0;
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

/* The first thread of which it says 1; *found 0: none. -errno: what it, or a look at the list, said. */
static int task_find(pid_t pid, int (*is)(void *arg, pid_t pid, pid_t tid), void *arg, pid_t *found)
{
	char path[40];
	int rc = 0;

	*found = 0;
	snprintf(path, sizeof path, "/proc/%d/task", pid);
	DIR *dir = opendir(path);
	if (!dir)
		return proc_stat_has_gone(-errno) ? 0 : -errno;
	for (struct dirent *entry; rc == 0 && (entry = readdir(dir));) {
		pid_t tid = (pid_t)atoi(entry->d_name);
		rc = tid > 0 ? is(arg, pid, tid) : 0;
		if (rc > 0)
			*found = tid;
	}
	closedir(dir);
	return rc < 0 ? rc : 0;
}

struct numbers {
	const int32_t *list;
	size_t count;
};

static int has_number(void *arg, pid_t pid, pid_t tid)
{
	const struct numbers *n = arg;
	const pid_t inner = task_inner_tid(pid, tid);

	for (size_t i = 0; i < n->count; i++)
		if (n->list[i] == inner)
			return 1;
	return 0;
}

bool task_has_inner(pid_t pid, const int32_t *numbers, size_t count)
{
	struct numbers n = { numbers, count };
	pid_t tid;

	return task_find(pid, has_number, &n, &tid) == 0 && tid;
}

int task_find_alive(pid_t pid, pid_t *tid)
{
	return task_find(pid, look_for_memory, NULL, tid);
}

pid_t task_alive(pid_t pid)
{
	pid_t tid;

	return task_find_alive(pid, &tid) == 0 ? tid : 0;
}
