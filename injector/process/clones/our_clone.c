/* SPDX-License-Identifier: MIT */
#include "process/clones/our_clone.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "files/whole_io.h"
#include "host/clocks.h"
#include "process/proc_stat.h"
#include "process/proc_status.h"

#define STAT_BYTES 1024
#define END_NS 10000000000ull /* for the kernel to free much memory */
#define END_PAUSE_NS 200000u

/* How the process numbers one of its children: namespaces of processes are nested, and NSpid has a number of each.
 * -errno: it could not be read, and a wait for another number would be for another child. */
static pid_t number_for(pid_t parent, pid_t child)
{
	char status[STATUS_BYTES], *end;
	unsigned depth = 0;
	pid_t number = child;

	int rc = proc_status_read(status, parent, 0);
	const char *at = rc == 0 ? proc_status_field(status, "NSpid") : NULL;
	for (; at && strtol(at, &end, 10) > 0; at = end)
		depth++;
	rc = rc ?: proc_status_read(status, child, 0);
	if (rc < 0)
		return rc;
	at = proc_status_field(status, "NSpid");
	for (unsigned i = 0; at && i < depth; i++, at = end)
		number = (pid_t)strtol(at, &end, 10);
	return number;
}

static bool sleeps_as_told(pid_t pid)
{
	char path[40], text[64];

	snprintf(path, sizeof path, "/proc/%d/syscall", pid);
	return whole_io_text(path, text, sizeof text) == 0 && strtol(text, NULL, 10) == SYS_nanosleep;
}

static bool field_is(const char *stat, unsigned field, long wanted)
{
	char value[32];

	return proc_stat_field(stat, field, value, sizeof value) == 0 && strtol(value, NULL, 10) == wanted;
}

/* -ESRCH: it is no child that sends no signal at its end; -errno: that could not be read. */
static int read_silent_child(pid_t parent, pid_t pid, char text[STAT_BYTES])
{
	char path[40];

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	const int rc = whole_io_text(path, text, STAT_BYTES);
	if (rc < 0)
		return proc_stat_has_gone(rc) ? -ESRCH : rc;
	return field_is(text, 4, parent) && field_is(text, 38, 0) ? 0 : -ESRCH;
}

static bool is_named(const char *stat)
{
	return strstr(stat, " (" OUR_CLONE_NAME ") ");
}

bool our_clone_is(const struct target *t, pid_t pid)
{
	char text[STAT_BYTES];

	return read_silent_child(t->pid, pid, text) == 0 && is_named(text);
}

static bool has_begun_since(const char *stat, uint64_t ticks)
{
	char value[32];

	return proc_stat_field(stat, 22, value, sizeof value) == 0 && strtoull(value, NULL, 10) >= ticks;
}

struct search {
	pid_t parent;
	struct our_clone_wish wish;
	struct our_clones found;
};

static int look(struct search *s, pid_t pid, struct err *e)
{
	char text[STAT_BYTES], state[8];

	const int rc = read_silent_child(s->parent, pid, text);
	if (rc < 0 && rc != -ESRCH) /* it might be one */
		return proc_stat_unread(rc, pid, e);
	if (rc < 0 || proc_stat_field(text, 3, state, sizeof state) < 0)
		return 0;
	const bool named = is_named(text), ended = state[0] == 'Z';
	const pid_t inner = number_for(s->parent, pid);
	if (inner < 0)
		return proc_stat_has_gone(inner) ? 0 : proc_stat_unread(inner, pid, e);
	if (!named && inner != s->wish.known) {
		s->found.expected += !ended && has_begun_since(text, s->wish.since_ticks);
		return 0;
	}
	if (!grow_list(s->found.list, s->found.count))
		return err_set(e, ENOMEM, "out of memory");
	s->found.list[s->found.count++] = (struct our_clone){
		.pid = pid, .inner = inner, .ended = ended, .sleeps = named && !ended && sleeps_as_told(pid)
	};
	return 0;
}

/* -ENOENT: this kernel does not list children (CONFIG_PROC_CHILDREN). */
static int look_at_children(struct search *s, pid_t tid, struct err *e)
{
	char path[64];
	pid_t pid;
	int rc = 0;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", s->parent, tid);
	FILE *file = fopen(path, "re");
	if (!file)
		return err_sys(e, "%s", path);
	while (rc == 0 && fscanf(file, "%d", &pid) == 1)
		rc = look(s, pid, e);
	fclose(file);
	return rc;
}

static int look_at_all(struct search *s, struct err *e)
{
	int rc = 0;

	DIR *dir = opendir("/proc");
	if (!dir)
		return err_sys(e, "%s", "/proc");
	for (struct dirent *entry; rc == 0 && (entry = readdir(dir));)
		if (atoi(entry->d_name) > 0)
			rc = look(s, (pid_t)atoi(entry->d_name), e);
	closedir(dir);
	return rc;
}

int our_clones_find(const struct target *t, struct our_clone_wish wish, struct our_clones *clones, struct err *e)
{
	struct search s = { .parent = t->pid, .wish = wish };
	AUTO_FREE pid_t *tids = NULL;
	size_t tid_count = 0;
	bool listed = false;

	int rc = target_tids(t, &tids, &tid_count, e);
	for (size_t i = 0; i < tid_count && rc == 0; i++) {
		rc = look_at_children(&s, tids[i], e);
		listed |= rc == 0;
		if (rc == -ENOENT || rc == -ESRCH) /* that thread has ended */
			rc = 0;
	}
	if (rc == 0 && !listed)
		rc = look_at_all(&s, e);
	if (rc < 0)
		free(s.found.list);
	else
		*clones = s.found;
	return rc;
}

/* As long as it is a child, even a zombie, its number is its own; only the process may take that away. */
static void end_one(pid_t parent, const struct our_clone *c)
{
	AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	char text[STAT_BYTES];

	if (pidfd >= 0 && read_silent_child(parent, c->pid, text) == 0)
		syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

void our_clones_end(const struct target *t, pid_t known)
{
	const uint64_t deadline_ns = clock_monotonic_ns() + END_NS;
	struct our_clone_wish wish = OUR_CLONE_NAMED;
	bool lives = true;

	wish.known = known;
	while (lives && clock_monotonic_ns() < deadline_ns) {
		struct our_clones clones = { 0 };
		lives = false;
		if (our_clones_find(t, wish, &clones, ERR_IGNORED) < 0)
			return;
		for (size_t i = 0; i < clones.count; i++)
			if (!clones.list[i].ended) {
				lives = true;
				end_one(t->pid, &clones.list[i]);
			}
		free(clones.list);
		if (lives)
			clock_pause(END_PAUSE_NS);
	}
}
