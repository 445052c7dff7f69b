/* SPDX-License-Identifier: MIT */
#include "process/target.h"

#include <dirent.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "host/clocks.h"
#include "process/live_thread.h"
#include "process/permission.h"
#include "process/proc_stat.h"
#include "process/proc_status.h"
#include "process/task.h"
#include "files/whole_io.h"

#define PF_KTHREAD 0x00200000u /* linux/sched.h */
#define LOOKS_MAX 20u          /* after a thread that lives */
#define IMAGE_LOOKS 5u         /* a millisecond apart */
#define TABLES_MOST (4u << 20) /* bytes of page tables that the kernel is asked to go through at once */

/* Where threads make the next and end, a look at one after the other may find each of them ended. *tid 0: none lives.
 * -errno: nothing could be seen of them. */
static int any_live_thread(const struct target *t, pid_t *tid)
{
	int rc = 0;

	*tid = 0;
	for (unsigned i = 0; i < LOOKS_MAX; i++) {
		rc = task_find_alive(t->pid, tid);
		if (*tid || t->pidfd < 0 || target_has_ended(t))
			return *tid || t->pidfd >= 0 ? 0 : rc;
		clock_pause(1000000);
	}
	return rc;
}

static void comm_of(pid_t pid, char *comm, size_t size)
{
	char path[40];

	snprintf(path, sizeof path, "/proc/%d/comm", pid);
	if (whole_io_text(path, comm, size) < 0)
		snprintf(comm, size, "?");
	comm[strcspn(comm, "\n")] = '\0';
}

/* A file of a thread; 0, or the error of who looks at a live one. */
static int read_of_thread(const char *path, char *text, size_t size, struct err *e)
{
	const int rc = whole_io_text(path, text, size);

	if (proc_stat_has_gone(rc))
		return err_set(e, ESRCH, "the thread of %s has ended", path);
	return rc < 0 ? err_set(e, -rc, "cannot read %s: %s", path, strerror(-rc)) : 0;
}

static int read_image(const char *directory, void *context, struct err *e)
{
	uint64_t *image = context;
	char path[80], text[1024], number[32];

	snprintf(path, sizeof path, "%s/stat", directory);
	int rc = read_of_thread(path, text, sizeof text, e);
	if (rc < 0)
		return rc;
	if (proc_stat_field(text, 23, number, sizeof number) < 0 || strcmp(number, "0") == 0)
		return err_set(e, ESRCH, "the thread of %s has ended", path);
	if (proc_stat_field(text, 26, number, sizeof number) == 0)
		image[0] = strtoull(number, NULL, 10);
	if (proc_stat_field(text, 28, number, sizeof number) == 0)
		image[1] = strtoull(number, NULL, 10);
	return 0;
}

/* Fields 26 and 28 of a live thread's stat: start of the code and of the stack. Zero if they cannot be read. */
static void image_of(const struct target *t, uint64_t image[2])
{
	image[0] = image[1] = 0;
	if (live_thread_look(t, read_image, image, ERR_IGNORED) < 0)
		return;
}

static int read_program(const char *directory, void *context, struct err *e)
{
	struct target *t = context;
	char path[80];

	snprintf(path, sizeof path, "%s/exe", directory);
	ssize_t n = readlink(path, t->program, sizeof t->program - 1);
	if (n < 0)
		return errno == ENOENT ? err_set(e, ESRCH, "the thread of %s has ended", path) : err_sys(e, "%s", path);
	t->program[n] = '\0';
	struct stat file;
	t->file[0] = t->file[1] = 0;
	if (stat(path, &file) == 0) {
		t->file[0] = file.st_dev;
		t->file[1] = file.st_ino;
	}
	return 0;
}

void target_explain_permission(const struct target *t, struct err *e)
{
	struct permission p;
	char why[200];
	size_t used = strlen(e->text);

	permission_read(&p, t->pid);
	permission_explain(&p, why, sizeof why);
	snprintf(e->text + used, sizeof e->text - used, " (%s)", why);
}

static bool file_holds(const char *directory, const char *group, const char *name, const char *text)
{
	char path[700], content[256];

	snprintf(path, sizeof path, "%s%s/%s", directory, group, name);
	return whole_io_text(path, content, sizeof content) == 0 && strstr(content, text) != NULL;
}

/*
 * Its threads stop for no tracer while a cgroup of it is frozen. /proc/PID/cgroup has a line "0::/group" for version 2
 * and "number:controllers:/group" for each hierarchy of version 1, which are mounted where systemd and container
 * engines mount them.
 */
static bool is_frozen(pid_t pid)
{
	char path[40], text[4096], *rest = text;

	snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
	if (whole_io_text(path, text, sizeof text) < 0)
		return false;
	for (char *line; (line = strsep(&rest, "\n"));) {
		char *group = strstr(line, ":/");
		if (!group++ || strstr(group, "/.."))
			continue; /* "/..": above the root of our cgroup namespace, and its name would lead out of the
			             directory */
		if (strncmp(line, "0::", 3) == 0
		            ? file_holds("/sys/fs/cgroup", group, "cgroup.events", "frozen 1") ||
		                      file_holds("/sys/fs/cgroup/unified", group, "cgroup.events", "frozen 1")
		            : strstr(line, "freezer") &&
		                      file_holds("/sys/fs/cgroup/freezer", group, "freezer.state", "FR"))
			return true;
	}
	return false;
}

/* A process that is ending has given its memory back already. */
static int refuse_without_memory(const struct target *t, const char *stat_text, struct err *e)
{
	char flags[32];

	if (proc_stat_field(stat_text, 9, flags, sizeof flags) == 0 && !(strtoull(flags, NULL, 10) & PF_KTHREAD))
		return err_set(e, ESRCH, "%s is about to end", t->comm);
	return err_set(e, EINVAL, "%s is a kernel thread: it has no heap", t->comm);
}

/* Everything that can be refused by looking. */
static int examine(struct target *t, struct err *e)
{
	char path[40], status[STATUS_BYTES], state[32], stat_text[1024];

	int rc = proc_status_read(status, t->pid, 0);
	if (rc < 0)
		return proc_stat_unread(rc, t->pid, e);
	pid_t group = (pid_t)proc_status_number(status, "Tgid", 10, 0);
	if (group > 0 && group != t->pid)
		return err_set(e, EINVAL, "%d is a thread of process %d; use -p %d", t->pid, group, group);
	snprintf(path, sizeof path, "/proc/%d/stat", t->pid);
	rc = whole_io_text(path, stat_text, sizeof stat_text);
	if (rc == 0)
		rc = proc_stat_field(stat_text, 3, state, sizeof state) < 0 ? -ESRCH : 0;
	if (rc < 0)
		return proc_stat_unread(rc, t->pid, e);
	t->tid = t->pid;
	if (state[0] == 'Z' || state[0] == 'X') {
		rc = any_live_thread(t, &t->tid);
		if (rc < 0)
			return proc_stat_unread(rc, t->pid, e);
		if (!t->tid)
			return err_set(e, ESRCH, "%s is a zombie: it has ended and waits for its parent (PID %d)",
			               t->comm, (pid_t)proc_status_number(status, "PPid", 10, 0));
	}
	if (!proc_status_field(status, "VmSize") && t->tid == t->pid)
		return refuse_without_memory(t, stat_text, e);
	if (is_frozen(t->pid))
		return err_set(e, EBUSY, "its cgroup is frozen; thaw it first; nothing was changed");
	return 0;
}

pid_t target_tracer(pid_t pid, pid_t tid, char name[TRACER_NAME])
{
	char status[STATUS_BYTES];

	int rc = proc_status_read(status, pid, tid);
	if (rc < 0)
		return proc_stat_has_gone(rc) ? -ESRCH : rc;
	pid_t tracer = (pid_t)proc_status_number(status, "TracerPid", 10, 0);
	if (tracer > 0)
		comm_of(tracer, name, TRACER_NAME);
	return tracer;
}

int target_check_tracer(const struct target *t, struct err *e)
{
	char name[TRACER_NAME];
	pid_t tracer = target_tracer(t->pid, 0, name);

	if (tracer < 0)
		return proc_stat_unread(tracer, t->pid, e);
	if (tracer == 0)
		return 0;
	return err_set(e, EBUSY, "it is already traced by PID %d (%s); end that tracer first", tracer, name);
}

int target_open(struct target *t, pid_t pid, struct err *e)
{
	struct target new = { .pid = pid, .tid = pid, .pidfd = -1, .lock_fd = { -1, -1 }, .announced_fd = -1 };

	if (pid == getpid())
		return err_set(e, EINVAL, "that is memattach itself");
	new.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int error = errno;
	comm_of(pid, new.comm, sizeof new.comm);
	int rc = examine(&new, e); /* knows better than pidfd_open why not */
	if (rc == 0 && new.pidfd < 0)
		rc = err_set(e, error, "pidfd_open: %s", strerror(error));
	rc = rc ?: proc_stat_number(pid, 22, &new.start_ticks, e);
	if (rc < 0) {
		target_close(&new);
		return rc;
	}
	if (live_thread_look(&new, read_program, &new, ERR_IGNORED) < 0)
		new.program[0] = '\0';
	/* It may be in an execve now, without memory. */
	for (unsigned i = 0; i < IMAGE_LOOKS && !new.image[1]; i++) {
		if (i > 0)
			clock_pause(1000000);
		image_of(&new, new.image);
	}
	*t = new;
	return 0;
}

int target_reopen(struct target *t, struct err *e)
{
	struct target now;

	int rc = target_open(&now, t->pid, e);
	if (rc < 0)
		return rc;
	/* It still lives after the other was opened: so that is no younger process with its number. */
	if (target_has_ended(t)) {
		target_close(&now);
		return err_set(e, ESRCH, "%s has ended; its number belongs to another process now", t->comm);
	}
	target_close(t);
	*t = now;
	return 0;
}

bool target_has_ended(const struct target *t)
{
	struct pollfd end = { .fd = t->pidfd, .events = POLLIN };

	return poll(&end, 1, 0) > 0;
}

void target_close(struct target *t)
{
	if (t->pidfd >= 0)
		close(t->pidfd);
	for (unsigned i = 0; i < TARGET_LOCKS; i++) {
		if (t->lock_fd[i] >= 0)
			close(t->lock_fd[i]);
		t->lock_fd[i] = -1;
	}
	if (t->announced_fd >= 0)
		close(t->announced_fd);
	t->pidfd = t->announced_fd = -1;
}

bool target_alive(const struct target *t)
{
	uint64_t start = 0;
	pid_t tid = 0;

	int rc = proc_stat_number(t->pid, 22, &start, ERR_IGNORED);
	if (rc == 0 && start != t->start_ticks)
		return false;
	rc = rc ?: any_live_thread(t, &tid);
	if (rc < 0 && rc != -ESRCH)
		return t->pidfd < 0 || !target_has_ended(t);
	return rc == 0 && tid;
}

bool target_same_program(const struct target *t)
{
	struct target now = *t;
	uint64_t image[2];

	image_of(t, image);
	if (image[1] && t->image[1] && (image[0] != t->image[0] || image[1] != t->image[1]))
		return false;
	if (live_thread_look(t, read_program, &now, ERR_IGNORED) < 0)
		return true;
	/* By the file: an upgrade of the package, or mv, gives it another name ("… (deleted)") while it runs. */
	if (now.file[1] && t->file[1])
		return now.file[0] == t->file[0] && now.file[1] == t->file[1];
	return strcmp(now.program, t->program) == 0;
}

bool target_has_execed(const struct target *t)
{
	return t->pid && target_alive(t) && !target_same_program(t);
}

uint64_t target_cpu_ns(const struct target *t)
{
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid(t->pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
		return 0;
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static uint64_t status_bytes(const char *status, const char *key)
{
	return (uint64_t)proc_status_number(status, key, 10, 0) * 1024;
}

static bool memory_of_status(const char *status, struct memory_use *m)
{
	if (!proc_status_field(status, "VmSize"))
		return false;
	m->resident = status_bytes(status, "VmRSS");
	m->anonymous = status_bytes(status, "RssAnon");
	m->shared = status_bytes(status, "RssShmem");
	m->files = status_bytes(status, "RssFile");
	m->swapped = status_bytes(status, "VmSwap");
	return true;
}

static int read_memory_use(const char *directory, void *context, struct err *e)
{
	char path[80], status[STATUS_BYTES];

	snprintf(path, sizeof path, "%s/status", directory);
	int rc = read_of_thread(path, status, sizeof status, e);
	if (rc == 0 && !memory_of_status(status, context))
		return err_set(e, ESRCH, "the thread of %s has ended", path);
	return rc;
}

int target_memory_use(const struct target *t, struct memory_use *use, struct err *e)
{
	struct memory_use m = { 0 };
	char status[STATUS_BYTES];
	int rc = 0;

	/* That of the first thread tells it, as long as it lives. */
	if (proc_status_read(status, t->pid, 0) < 0 || !memory_of_status(status, &m))
		rc = live_thread_look(t, read_memory_use, &m, e);
	if (rc == 0)
		*use = m;
	return rc;
}

uint64_t target_resident_exact(const struct target *t)
{
	char path[48], text[STATUS_BYTES];

	if (proc_status_read(text, t->pid, 0) < 0 || status_bytes(text, "VmPTE") > TABLES_MOST)
		return 0;
	/* Of the process alone, not of its threads: there is none once the first thread has ended. */
	snprintf(path, sizeof path, "/proc/%d/smaps_rollup", t->pid);
	return whole_io_text(path, text, sizeof text) == 0 ? status_bytes(text, "Rss") : 0;
}

void target_private_memory(const struct target *t, uint64_t *resident, uint64_t *swapped)
{
	struct memory_use m = { 0 };

	if (target_memory_use(t, &m, ERR_IGNORED) < 0)
		m = (struct memory_use){ 0 };
	*resident = m.anonymous;
	*swapped = m.swapped;
}

uint64_t target_private_bytes(const struct target *t)
{
	uint64_t resident, swapped;

	target_private_memory(t, &resident, &swapped);
	return resident + swapped;
}

#define PF_IO_WORKER 0x10u     /* linux/sched.h, since 5.12 at this place */
#define PF_USER_WORKER 0x4000u /* since 6.4 */

/* What the flags of a thread (proc(5)) say about this on the kernel that runs: other bits meant something else before.
 */
static uint64_t worker_flags(void)
{
	unsigned major = 0, minor = 0;
	struct utsname kernel;

	if (uname(&kernel) != 0 || sscanf(kernel.release, "%u.%u", &major, &minor) != 2)
		return 0;
	if (major > 6 || (major == 6 && minor >= 4))
		return PF_IO_WORKER | PF_USER_WORKER;
	return major == 6 || (major == 5 && minor >= 12) ? PF_IO_WORKER : 0;
}

static bool has_flag(pid_t pid, pid_t tid, uint64_t wanted)
{
	char flags[32];

	return proc_stat_text(pid, tid, 9, flags, sizeof flags) == 0 && (strtoull(flags, NULL, 10) & wanted);
}

int target_tids(const struct target *t, pid_t **list, size_t *count, struct err *e)
{
	const uint64_t worker = worker_flags();
	char path[40];
	pid_t *tids = NULL;
	size_t used = 0;

	snprintf(path, sizeof path, "/proc/%d/task", t->pid);
	DIR *dir = opendir(path);
	if (!dir)
		return proc_stat_has_gone(-errno) ? err_set(e, ESRCH, "the process has ended")
		                                  : err_sys(e, "cannot list the threads of process %d", t->pid);
	for (struct dirent *entry; (entry = readdir(dir));) {
		pid_t tid = (pid_t)atoi(entry->d_name);
		if (tid <= 0 || has_flag(t->pid, tid, worker))
			continue;
		if (!grow_list(tids, used)) {
			free(tids);
			closedir(dir);
			return err_set(e, ENOMEM, "out of memory");
		}
		tids[used++] = tid;
	}
	closedir(dir);
	if (used == 0)
		return err_set(e, ESRCH, "the process has ended");
	*list = tids;
	*count = used;
	return 0;
}

static int look_at_some(const struct target *t, size_t first, size_t max, struct thread_info **list, size_t *count,
                        size_t *total, struct err *e)
{
	AUTO_FREE pid_t *tids = NULL;
	size_t all, used = 0;

	int rc = target_tids(t, &tids, &all, e);
	if (rc < 0)
		return rc;
	if (max > all)
		max = all;
	struct thread_info *threads = calloc(max, sizeof *threads);
	if (!threads)
		return err_set(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < max; i++) {
		threads[used] = (struct thread_info){ .tid = tids[(first + i) % all] };
		thread_look(t->pid, &threads[used]);
		if (!thread_state_has_ended(threads[used].state))
			used++;
	}
	if (used == 0 && max == all) {
		free(threads);
		return err_set(e, ESRCH, "the process has ended");
	}
	*list = threads;
	*count = used;
	*total = all;
	return 0;
}

int target_some_threads(const struct target *t, size_t first, size_t max, struct thread_info **list, size_t *count,
                        size_t *total, struct err *e)
{
	int rc;

	do
		rc = look_at_some(t, first, max, list, count, total, e);
	while (rc == -ESRCH && target_alive(t));
	return rc;
}

int target_threads(const struct target *t, struct thread_info **list, size_t *count, struct err *e)
{
	size_t total;

	return target_some_threads(t, 0, SIZE_MAX, list, count, &total, e);
}
