/* SPDX-License-Identifier: MIT */
#include "choose/child_search.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "process/proc_stat.h"

static bool children_of_thread(pid_t pid, pid_t tid, bool (*take)(void *context, const struct chosen *child),
                               void *context)
{
	struct chosen child;
	char path[64];
	int number;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, tid);
	AUTO_FCLOSE FILE *f = fopen(path, "re");
	while (f && fscanf(f, "%d", &number) == 1)
		if (chosen_look(&child, number, ERR_IGNORED) == 0 && chosen_age_ns(child.start_ticks) >= CHILD_AGE_NS &&
		    !take(context, &child))
			return false;
	return true;
}

void child_search(const struct chosen *parent, bool (*take)(void *context, const struct chosen *child), void *context)
{
	uint64_t start_ticks;
	char path[40];

	if (proc_stat_number(parent->pid, 22, &start_ticks, ERR_IGNORED) < 0 || start_ticks != parent->start_ticks)
		return;
	snprintf(path, sizeof path, "/proc/%d/task", parent->pid);
	DIR *tasks = opendir(path);
	if (!tasks)
		return;
	for (struct dirent *entry; (entry = readdir(tasks));) {
		pid_t tid = (pid_t)atoi(entry->d_name);
		if (tid > 0 && !children_of_thread(parent->pid, tid, take, context))
			break;
	}
	closedir(tasks);
}

bool child_search_works(void)
{
	return access("/proc/thread-self/children", R_OK) == 0;
}
