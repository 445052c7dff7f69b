/* SPDX-License-Identifier: MIT */
#include "process/snapshot.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "process/live_thread.h"
#include "process/proc_status.h"
#include "process/task.h"

#define DESCRIPTORS_MAX 1000000u

/*
 * Only a file in memory may be one that memattach brought: servers have a million sockets, and asking for the inode of
 * other files may take as long as their file system likes. False: none of these.
 */
static bool identify(struct snapshot_descriptor *d, int dir, const char *name)
{
	struct stat st;

	if (strncmp(d->target, "/memfd:", 7) != 0 || fstatat(dir, name, &st, 0) < 0)
		return false;
	d->inode = st.st_ino;
	d->dev_major = major(st.st_dev);
	d->dev_minor = minor(st.st_dev);
	return true;
}

static bool directory_has_memory(const char *directory)
{
	pid_t pid, tid;

	return sscanf(directory, "/proc/%d/task/%d", &pid, &tid) == 2 && task_has_memory(pid, tid);
}

static int take_descriptors(const char *directory, void *context, struct err *e)
{
	struct snapshot *s = context;
	char path[80];

	snprintf(path, sizeof path, "%s/fd", directory);
	DIR *dir = opendir(path);
	if (!dir && (errno == ENOENT || errno == ESRCH))
		return err_set(e, ESRCH, "the thread of %s has ended", path);
	if (!dir)
		return err_sys(e, "cannot list the descriptors of the target");
	s->descriptor_count = 0;
	for (struct dirent *entry; (entry = readdir(dir)) && s->descriptor_count < DESCRIPTORS_MAX;) {
		if (entry->d_name[0] == '.')
			continue;
		if (!grow_list(s->descriptors, s->descriptor_count)) {
			closedir(dir);
			return err_set(e, ENOMEM, "out of memory");
		}
		struct snapshot_descriptor *d = &s->descriptors[s->descriptor_count];
		d->number = atoi(entry->d_name);
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, d->target, sizeof d->target - 1);
		if (n < 0)
			continue; /* closed meanwhile */
		d->target[n] = '\0';
		if (identify(d, dirfd(dir), entry->d_name))
			s->descriptor_count++;
	}
	closedir(dir);
	/* None at all: it may have been exiting. */
	return s->descriptor_count || directory_has_memory(directory)
	               ? 0
	               : err_set(e, ESRCH, "the thread of %s has ended", path);
}

static uint64_t mask_of(const char *status, const char *name)
{
	return (uint64_t)proc_status_number(status, name, 16, 0);
}

/* The status of a thread, as text; false: it has ended. */
static bool read_status(pid_t pid, pid_t tid, char text[STATUS_BYTES])
{
	if (proc_status_read(text, pid, tid) < 0)
		return false;
	const char *state = proc_status_field(text, "State");
	return state && *state != 'Z'; /* a zombie has no dispositions any more */
}

uint64_t snapshot_blocked_now(const struct target *t, pid_t tid)
{
	char text[STATUS_BYTES];

	return read_status(t->pid, tid, text) ? mask_of(text, "SigBlk") : 0;
}

static int take_signals(struct snapshot *s, const struct target *t, struct err *e)
{
	AUTO_FREE pid_t *tids = NULL;
	size_t count;

	int rc = target_tids(t, &tids, &count, e);
	if (rc < 0)
		return rc;
	s->threads = calloc(count, sizeof *s->threads);
	for (size_t i = 0; s->threads && i < count; i++) {
		char text[STATUS_BYTES];
		if (!read_status(t->pid, tids[i], text))
			continue;
		s->threads[s->thread_count].tid = tids[i];
		s->threads[s->thread_count++].blocked = mask_of(text, "SigBlk");
		s->ignored = mask_of(text, "SigIgn");
		s->caught = mask_of(text, "SigCgt");
	}
	return s->threads ? 0 : err_set(e, ENOMEM, "out of memory");
}

int snapshot_take(struct snapshot *s, const struct target *t, struct err *e)
{
	struct snapshot new = { 0 };

	int rc = live_thread_maps(t, &new.maps, e);
	rc = rc ?: live_thread_look(t, take_descriptors, &new, e);
	rc = rc ?: take_signals(&new, t, e);
	if (rc < 0) {
		snapshot_free(&new);
		return rc;
	}
	*s = new;
	return 0;
}

void snapshot_free(struct snapshot *s)
{
	maps_free(&s->maps);
	free(s->descriptors);
	free(s->threads);
	*s = (struct snapshot){ 0 };
}
