/* SPDX-License-Identifier: MIT */
#include "process/clones/task_room.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/whole_io.h"
#include "host/cgroup_number.h"
#include "process/proc_status.h"

#define LEAST 16u

static bool is_ample(uint64_t used, uint64_t limit)
{
	const uint64_t kept = limit / 8 > LEAST ? limit / 8 : LEAST;

	return used + kept < limit;
}

/* A group and those that it is in. */
static bool is_ample_upwards(const char *mount, const char *group)
{
	char directory[768], *slash;
	uint64_t used, limit;
	bool ample = true;

	if ((size_t)snprintf(directory, sizeof directory, "%s%s", mount, group) >= sizeof directory)
		return true;
	while (ample && strlen(directory) >= strlen(mount)) {
		if (cgroup_number(directory, "pids.max", &limit) && cgroup_number(directory, "pids.current", &used))
			ample = is_ample(used, limit);
		slash = strrchr(directory, '/');
		*slash = '\0';
	}
	return ample;
}

static bool groups_are_ample(pid_t pid)
{
	char path[32], text[4096], *rest = text;
	bool ample = true;

	snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
	if (whole_io_text(path, text, sizeof text) < 0)
		return true;
	for (char *line; ample && (line = strsep(&rest, "\n"));) {
		const char *group = strstr(line, ":/");
		if (group && !strncmp(line, "0::", 3))
			ample = is_ample_upwards("/sys/fs/cgroup", group + 1) &&
			        is_ample_upwards("/sys/fs/cgroup/unified", group + 1);
		else if (group && strstr(line, ":pids:"))
			ample = is_ample_upwards("/sys/fs/cgroup/pids", group + 1);
	}
	return ample;
}

static uint64_t tasks_of_user(int64_t user)
{
	char status[STATUS_BYTES];
	uint64_t sum = 0;

	DIR *dir = opendir("/proc");
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		const pid_t pid = (pid_t)atoi(entry->d_name);
		if (pid > 0 && proc_status_read(status, pid, 0) == 0 &&
		    proc_status_number(status, "Uid", 10, -1) == user)
			sum += (uint64_t)proc_status_number(status, "Threads", 10, 1);
	}
	if (dir)
		closedir(dir);
	return sum;
}

/* Root may have any number. */
static bool user_is_ample(pid_t pid)
{
	char path[32], text[4096], status[STATUS_BYTES];

	snprintf(path, sizeof path, "/proc/%d/limits", pid);
	if (whole_io_text(path, text, sizeof text) < 0 || proc_status_read(status, pid, 0) < 0)
		return true;
	const int64_t user = proc_status_number(status, "Uid", 10, 0);
	const char *line = strstr(text, "\nMax processes");
	if (!user || !line)
		return true;
	line += strlen("\nMax processes");
	line += strspn(line, " ");
	return !strncmp(line, "unlimited", 9) || is_ample(tasks_of_user(user), strtoull(line, NULL, 10));
}

bool task_room_is_ample(pid_t pid)
{
	return groups_are_ample(pid) && user_is_ample(pid);
}
