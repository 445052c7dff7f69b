/* SPDX-License-Identifier: MIT */
#include "process/clone_vm.h"

#include <dirent.h>
#include <linux/kcmp.h>
#include <stdlib.h>
#include <unistd.h>

#include "arch/system_calls.h"
#include "base/cleanup.h"
#include "base/grow.h"
#include "process/task.h"

#define TRIES 20u /* with threads that end meanwhile */

static bool share(pid_t tid, pid_t pid)
{
	return syscall(SYS_kcmp, tid, pid, KCMP_VM, 0, 0) == 0;
}

bool clone_vm_is_one(const struct target *t, pid_t pid)
{
	return share(task_alive(t->pid), pid);
}

static int add(pid_t **list, size_t *count, pid_t pid, struct err *e)
{
	if (!grow_list(*list, *count))
		return err_set(e, ENOMEM, "out of memory");
	(*list)[(*count)++] = pid;
	return 0;
}

/* All processes whose memory is that of thread tid. */
static int find_sharers_of(const struct target *t, pid_t tid, pid_t **list, size_t *count, struct err *e)
{
	pid_t *found = NULL;
	size_t found_count = 0;
	int rc = 0;

	DIR *dir = opendir("/proc");
	if (!dir)
		return err_sys(e, "/proc");
	for (struct dirent *entry; rc == 0 && (entry = readdir(dir));) {
		pid_t pid = (pid_t)atoi(entry->d_name);
		if (pid > 0 && pid != t->pid && share(tid, pid))
			rc = add(&found, &found_count, pid, e);
	}
	closedir(dir);
	if (rc < 0) {
		free(found);
		return rc;
	}
	*list = found;
	*count = found_count;
	return 0;
}

int clone_vm_find(const struct target *t, pid_t **list, size_t *count, struct err *e)
{
	pid_t *found = NULL;
	size_t found_count = 0;

	if (!share(getpid(), getpid()))
		return err_sys(e,
		               "processes that share its memory cannot be told without kcmp(2), which this kernel has "
		               "not (CONFIG_KCMP) or forbids");
	for (unsigned i = 0; i < TRIES; i++) {
		pid_t tid = task_alive(t->pid);
		int rc = find_sharers_of(t, tid, &found, &found_count, e);
		if (rc < 0)
			return rc;
		if (found_count || task_has_memory(t->pid, tid))
			break;
		free(found); /* it has ended, and with nothing nobody shares anything */
		found = NULL;
	}
	*list = found;
	*count = found_count;
	return 0;
}

bool clone_vm_may_wait(const struct thread_info *thread)
{
	bool may_be = thread->call.number == -1 || thread->call.number == SYS_vfork ||
	              thread->call.number == SYS_clone || thread->call.number == 435 /* clone3 */;

	return thread->state == 'D' && may_be;
}

int clone_vm_check_thread_pointers(const struct target *t, const struct thread_info *threads, size_t count,
                                   struct err *e)
{
	AUTO_FREE pid_t *others = NULL;
	size_t other_count = 0, waiting = 0;

	int rc = clone_vm_find(t, &others, &other_count, e);
	if (rc < 0 || other_count == 0)
		return rc;
	for (size_t i = 0; i < count; i++)
		waiting += clone_vm_may_wait(&threads[i]);
	if (other_count <= waiting)
		return 0;
	return err_set(e, EBUSY,
	               "process %d runs in its memory without being one of its threads (clone with CLONE_VM), on the "
	               "thread pointer of one",
	               others[0]);
}
