/* SPDX-License-Identifier: MIT */
#include "process/live_thread.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "host/clocks.h"
#include "maps/maps_at.h"
#include "process/task.h"
#include "host/watchdog.h"

#define PATIENCE_NS 5000000000ull /* with threads that end while their files are read */

static bool process_ended(const struct target *t)
{
	struct pollfd end = { .fd = t->pidfd, .events = POLLIN };

	return t->pidfd < 0 ? task_alive(t->pid) == 0 : poll(&end, 1, 0) > 0;
}

int live_thread_look(const struct target *t, live_thread_fn look, void *context, struct err *e)
{
	uint64_t deadline_ns = clock_monotonic_ns() + PATIENCE_NS;
	int rc = -ESRCH;

	for (pid_t tid = t->tid; rc == -ESRCH; tid = task_alive(t->pid)) {
		char directory[64];
		snprintf(directory, sizeof directory, "/proc/%d/task/%d", t->pid, tid);
		rc = tid ? look(directory, context, e) : err_set(e, ESRCH, "no thread of it was found");
		if (!tid)
			clock_pause(1000000);
		if (rc == -ESRCH && process_ended(t))
			return err_set(e, ESRCH, "the process has ended");
		if (rc == -ESRCH && clock_monotonic_ns() >= deadline_ns)
			return rc;
	}
	return rc;
}

static int read_maps(const char *directory, void *maps, struct err *e)
{
	char path[80];

	snprintf(path, sizeof path, "%s/maps", directory);
	return maps_read(maps, path, e);
}

int live_thread_maps(const struct target *t, struct maps *maps, struct err *e)
{
	return live_thread_look(t, read_maps, maps, e);
}

struct places {
	struct maps *maps;
	const uint64_t *addresses;
	size_t count;
};

static int read_maps_at(const char *directory, void *context, struct err *e)
{
	const struct places *p = context;
	char path[80];

	snprintf(path, sizeof path, "%s/maps", directory);
	return maps_at_read(p->maps, path, p->addresses, p->count, e);
}

int live_thread_maps_at(const struct target *t, struct maps *maps, const uint64_t *addresses, size_t count,
                        struct err *e)
{
	struct places places = { maps, addresses, count };

	return live_thread_look(t, read_maps_at, &places, e);
}

/* What was opened while the thread had memory stays what it is; opened later it would tell of nothing. */
static int open_file(const char *directory, const char *name, int flags, int *fd, struct err *e)
{
	pid_t pid, tid;
	char path[80];

	snprintf(path, sizeof path, "%s/%s", directory, name);
	watchdog_call_begin(); /* an execve keeps it waiting */
	AUTO_CLOSE int new = open(path, flags | O_CLOEXEC);
	watchdog_call_end();
	if (new < 0 && errno != ENOENT && errno != ESRCH)
		return err_sys(e, "cannot open %s", path);
	if (new < 0 || sscanf(directory, "/proc/%d/task/%d", &pid, &tid) != 2 || !task_has_memory(pid, tid))
		return err_set(e, ESRCH, "the thread of %s has ended", path);
	*fd = cleanup_steal_fd(&new);
	return 0;
}

struct file {
	const char *name;
	int *fd;
};

static int open_readable(const char *directory, void *context, struct err *e)
{
	const struct file *f = context;

	return open_file(directory, f->name, O_RDONLY, f->fd, e);
}

int live_thread_open(const struct target *t, const char *name, int *fd, struct err *e)
{
	struct file file = { name, fd };

	return live_thread_look(t, open_readable, &file, e);
}

struct memory {
	int readable, writable;
};

static int open_memory(const char *directory, void *context, struct err *e)
{
	struct memory *m = context;
	AUTO_CLOSE int readable = -1;

	int rc = open_file(directory, "mem", O_RDONLY, &readable, e);
	rc = rc ?: open_file(directory, "mem", O_RDWR, &m->writable, e);
	if (rc == 0)
		m->readable = cleanup_steal_fd(&readable);
	return rc;
}

int live_thread_memory(const struct target *t, struct target_memory *memory, int *writable_fd, struct err *e)
{
	struct memory opened = { -1, -1 };

	int rc = live_thread_look(t, open_memory, &opened, e);
	if (rc < 0)
		return rc;
	/* The number of the first thread is kept as long as the process is there. */
	*memory = (struct target_memory){ .pid = t->tid == t->pid ? t->pid : 0,
		                          .process = t->pid,
		                          .mem_fd = opened.readable };
	*writable_fd = opened.writable;
	return 0;
}
