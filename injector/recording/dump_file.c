/* SPDX-License-Identifier: MIT */
#include "recording/dump_file.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "host/clocks.h"
#include "files/file_place.h"
#include "files/owner.h"
#include "sandbox/child.h"
#include "sandbox/close_all_but.h"

#define INTERVAL_NS 2000000000ull
#define UNCHANGED_NS 30000000000ull
#define LEAST_PRIORITY 19
#define PART_OF_TIME 50u /* one of so many parts of a processor's time */
#define BYTES_PER_SECOND 10000000u
#define WAIT_MS 100
#define GONE_MS 1000 /* for a child that removes a file: one that waits for a disk may take longer */
#define MODE 0600
#define NUMBER_MAX 1000u /* of names that are tried instead of one that is taken */

struct dump_file_result {
	char name[NAME_MAX + 1];     /* in the directory */
	struct file_identity ours;   /* of the file that memattach wrote last under that name, … */
	struct file_identity coming; /* … or is just about to put there */
	uint64_t bytes;              /* of regions that are being copied */
	_Atomic uint64_t copied;
	struct err error; /* of the last copy that failed */
};

static int take_name(struct dump_file *f, struct err *e)
{
	AUTO_CLOSE int fd =
		openat(f->directory, f->result->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, MODE);

	if (fd < 0 && errno == EEXIST)
		return err_set(e, EEXIST, "%s exists; memattach never writes over a file, choose another name with -o",
		               f->path);
	if (fd < 0)
		return err_sys(e, "cannot create the dump %s", f->path);
	owner_give(fd);
	int rc = file_identity_read(fd, "", &f->result->ours);
	f->result->coming = f->result->ours;
	return rc < 0 ? err_set(e, -rc, "cannot look at the dump %s: %s", f->path, strerror(-rc)) : 0;
}

/* A link that somebody may have put there is not followed, neither on the way nor as the name. */
static int find_place(struct dump_file *f, struct err *e)
{
	struct file_place place;

	if (f->path[0] == '\0' || f->path[strlen(f->path) - 1] == '/')
		return err_set(e, EISDIR, "%s is no name of a file; -o wants one", f->path);
	int rc = file_place_open(&place, f->path, PLACE_KEEP_LINK, e);
	if (rc < 0)
		return err_prefix(e, "cannot create the dump %s", f->path);
	f->directory = place.directory;
	memcpy(f->result->name, place.name, sizeof f->result->name);
	return 0;
}

int dump_file_create(struct dump_file *f, const char *path, struct err *e)
{
	*f = (struct dump_file){ .directory = -1, .interval_ns = INTERVAL_NS, .unchanged_ns = UNCHANGED_NS };
	if ((size_t)snprintf(f->path, sizeof f->path, "%s", path) >= sizeof f->path)
		return err_set(e, ENAMETOOLONG, "the name of the dump is too long");
	f->result = mmap(NULL, sizeof *f->result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (f->result == MAP_FAILED) {
		f->result = NULL;
		return err_sys(e, "out of memory");
	}
	int rc = find_place(f, e);
	rc = rc ?: take_name(f, e);
	if (rc < 0)
		dump_file_close(f);
	return rc;
}

void dump_file_close(struct dump_file *f)
{
	dump_file_abort(f);
	if (f->directory >= 0)
		close(f->directory);
	if (f->result)
		munmap(f->result, sizeof *f->result);
	f->directory = -1;
	f->result = NULL;
}

/* 1: what is under the name is what memattach wrote last; 0: nothing does; -EEXIST: something else. */
static int whose_name(const struct dump_file *f)
{
	struct dump_file_result *r = f->result;
	struct file_identity there;

	int rc = file_identity_read(f->directory, r->name, &there);
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	/* A copy that was ended just after it was put there. */
	if (file_identity_same(&there, &r->coming))
		r->ours = r->coming;
	return file_identity_same(&there, &r->ours) ? 1 : -EEXIST;
}

/* ---- in the child ---- */

/* Our name, or if somebody else has a file there: NAME.1, NAME.2 … */
static int take_free_name(struct dump_file *f, int fd, struct err *e)
{
	char name[sizeof f->result->name];
	int rc = new_file_name(&f->coming, f->directory, fd, f->result->name);

	memcpy(name, f->result->name, sizeof name);
	for (unsigned i = 1; i <= NUMBER_MAX && rc == -EEXIST; i++) {
		snprintf(name, sizeof name, "%.240s.%u", f->result->name, i);
		rc = new_file_name(&f->coming, f->directory, fd, name);
	}
	if (rc < 0)
		return err_set(e, -rc, "cannot name the dump %s: %s", name, strerror(-rc));
	memcpy(f->result->name, name, sizeof name);
	return 0;
}

/* In the place of the copy before. */
static int replace(struct dump_file *f, int fd, struct err *e)
{
	int rc = new_file_replace(&f->coming, f->directory, fd, f->result->name);

	return rc < 0 ? err_set(e, -rc, "cannot put the dump in its place: %s", strerror(-rc)) : 0;
}

static int put_in_place(struct dump_file *f, int fd, struct err *e)
{
	int whose = whose_name(f);
	int rc = file_identity_read(fd, "", &f->result->coming);

	if (rc < 0)
		return err_set(e, -rc, "cannot look at the dump: %s", strerror(-rc));
	rc = whose == 1 ? replace(f, fd, e) : take_free_name(f, fd, e);
	if (rc == 0)
		f->result->ours = f->result->coming;
	return rc;
}

static int write_copy(struct dump_file *f, const struct dump_source *source, struct err *e)
{
	AUTO_CLOSE int fd = new_file_open(&f->coming, f->directory, MODE);
	if (fd < 0)
		return err_set(e, -fd, "cannot write the dump: %s", strerror(-fd));
	int rc = dump_copy(source, fd, e);
	rc = rc ?: put_in_place(f, fd, e);
	if (rc < 0)
		new_file_remove(&f->coming, f->directory);
	return rc;
}

/*
 * Only the directory stays open, what the source reads from if it is not -1, and what a sanitizer would write to. A
 * child that outlives memattach must not keep what stands for it: the lock of the session, pipes that somebody waits at
 * the end of.
 */
static void close_others(int directory, int source_fd)
{
	close_all_but((int[]){ STDERR_FILENO, directory, source_fd }, 3);
}

/* A copy that nobody waits for takes no processor from the target, nor from a thread of it that is stopped. */
static _Noreturn void run_child(struct dump_file *f, const struct dump_source *source, bool waited_for)
{
	if (!waited_for)
		setpriority(PRIO_PROCESS, 0, LEAST_PRIORITY);
	signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit shall fail */
	close_others(f->directory, source->fd);
	int rc = write_copy(f, source, &f->result->error);
	_exit(rc < 0);
}

/* ---- in memattach ---- */

/* So much longer than the lease is what a copy says for valid until somebody reads that it was not replaced. */
static void extend_lease(const struct dump_file *f, struct dump_source *source)
{
	uint64_t next_ns = f->interval_ns > f->unchanged_ns ? f->interval_ns : f->unchanged_ns;

	if (source->header.state != DUMP_STATE_RUNNING)
		return;
	source->longer_ns = 2 * next_ns;
	source->header.lease_realtime_ns += source->longer_ns;
}

static int begin(struct dump_file *f, struct dump_source *source, bool waited_for, struct err *e)
{
	f->result->bytes = dump_source_bytes(source);
	f->result->copied = 0;
	f->result->error = (struct err){ .code = EIO, .text = "the process that writes the dump was ended" };
	source->copied = &f->result->copied;
	extend_lease(f, source);
	f->begun_at = time(NULL);
	f->begun_ns = clock_monotonic_ns();
	new_file_choose_name(&f->coming);
	pid_t child = child_start(0);
	if (child == 0)
		run_child(f, source, waited_for);
	f->child = child > 0 ? child : 0;
	return child < 0 ? err_sys(e, "no process can be made to write the dump") : 0;
}

static void plan_next(struct dump_file *f, const struct rusage *used)
{
	uint64_t took_us = (uint64_t)(used->ru_utime.tv_sec + used->ru_stime.tv_sec) * 1000000u +
	                   (uint64_t)(used->ru_utime.tv_usec + used->ru_stime.tv_usec);
	uint64_t by_bytes = f->result->bytes * (1000000000u / BYTES_PER_SECOND),
		 by_time = took_us * 1000u * PART_OF_TIME;

	f->interval_ns = by_bytes > by_time ? by_bytes : by_time;
	if (f->interval_ns < INTERVAL_NS)
		f->interval_ns = INTERVAL_NS;
	f->due_ns = clock_monotonic_ns() + f->interval_ns;
}

/* A name that had to be changed is shown from now on. */
static void show_name(struct dump_file *f)
{
	char *slash = strrchr(f->path, '/');
	size_t kept = slash ? (size_t)(slash + 1 - f->path) : 0;

	snprintf(f->path + kept, sizeof f->path - kept, "%s", f->result->name);
}

static int succeeded(struct dump_file *f)
{
	f->copied_state = f->state;
	f->copied_at = f->begun_at;
	show_name(f);
	return 1;
}

/* 1: the copy has come to its end; 0: not yet; -errno: it has failed. */
static int poll_child(struct dump_file *f, struct err *e)
{
	struct rusage used = { 0 };
	int status = 0;

	pid_t ended = wait4(f->child, &status, WNOHANG, &used);
	if (ended == 0 || (ended < 0 && errno == EINTR))
		return 0;
	f->child = 0;
	plan_next(f, &used);
	if (ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return succeeded(f);
	*e = f->result->error;
	return e->code ? -e->code : -EIO;
}

/* Tells recordings apart that a reader could tell apart. */
static uint64_t state_of(const struct dump_writer *w)
{
	uint64_t state = w->own->region_count;

	for (unsigned i = 0; i < DUMP_COUNTER_COUNT; i++)
		state = state * 31 + dump_writer_counter(w, (enum dump_counter)i);
	for (unsigned i = 0; i < sizeof w->arenas / sizeof w->arenas[0]; i++)
		state = state * 31 + w->arenas[i].used;
	return state * 31 + dump_writer_state(w);
}

int dump_file_tick(struct dump_file *f, const struct dump_writer *w, struct err *e)
{
	struct dump_source source;

	if (f->child)
		return poll_child(f, e);
	uint64_t now = clock_monotonic_ns();
	if (now < f->due_ns)
		return 0;
	f->state = state_of(w);
	if (f->state == f->copied_state && now < f->due_ns + f->unchanged_ns)
		return 0;
	dump_source_of_writer(&source, w);
	int rc = begin(f, &source, false, e);
	if (rc < 0)
		f->due_ns = now + f->interval_ns;
	return rc;
}

static void remove_temporary(struct dump_file *f)
{
	unlinkat(f->directory, f->coming.temporary, 0);
}

static void remove_ours(struct dump_file *f)
{
	if (whose_name(f) == 1)
		unlinkat(f->directory, f->result->name, 0);
}

/* A file system that stands still would hold up memattach for ever, and with it what it has to put back in the target.
 */
static void remove_aside(struct dump_file *f, void (*remove)(struct dump_file *f))
{
	pid_t child = child_start(0);

	if (child == 0)
		close_others(f->directory, -1);
	if (child <= 0) /* or with no process to spare */
		remove(f);
	if (child == 0)
		_exit(0);
	if (child > 0) {
		child_ends_within(child, GONE_MS);
		waitpid(child, NULL, WNOHANG);
	}
}

void dump_file_abort(struct dump_file *f)
{
	if (!f->child)
		return;
	child_end(f->child);
	remove_aside(f, remove_temporary);
	f->child = 0;
	f->due_ns = clock_monotonic_ns();
}

void dump_file_discard(struct dump_file *f)
{
	dump_file_abort(f);
	if (f->directory >= 0)
		remove_aside(f, remove_ours);
	dump_file_close(f);
}

static int await(struct dump_file *f, const struct patience *patience, struct err *e)
{
	int rc = 0;

	while (rc == 0) {
		double done = f->result->bytes ? fmin(1, (double)f->result->copied / (double)f->result->bytes) : 0;
		if (!child_ends_within(f->child, WAIT_MS) && !patience->goes_on(patience->context, done)) {
			dump_file_abort(f);
			return err_set(e, EINTR, "the last copy of the dump was given up");
		}
		rc = poll_child(f, e);
	}
	return rc < 0 ? rc : 0;
}

int dump_file_write(struct dump_file *f, const struct dump_source *source, const struct patience *patience,
                    struct err *e)
{
	struct dump_source last = *source;

	dump_file_abort(f);
	int rc = begin(f, &last, true, e);
	if (rc < 0) { /* a limit on processes: what is the last chance is not left out */
		rc = write_copy(f, &last, e);
		return rc < 0 ? rc : (succeeded(f), 0);
	}
	return await(f, patience, e);
}

struct file_identity dump_file_identity(const struct dump_file *f)
{
	return f->result->ours;
}

int dump_file_reopen(const struct dump_file *f, int flags)
{
	struct file_identity there = { 0 };
	AUTO_CLOSE int fd = openat(f->directory, f->result->name, O_PATH | O_CLOEXEC | O_NOFOLLOW);
	char path[40];

	int rc = fd < 0 ? -errno : file_identity_read(fd, "", &there);
	if (rc < 0)
		return rc;
	if (!file_identity_same(&there, &f->result->ours))
		return -EEXIST;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int opened = open(path, flags | O_CLOEXEC);
	return opened < 0 ? -errno : opened;
}

int dump_file_change(struct dump_file *f, int (*change)(const struct dump_file *f, const void *what, struct err *e),
                     const void *what, const struct patience *patience, struct err *e)
{
	dump_file_abort(f);
	f->result->bytes = f->result->copied = 0;
	f->result->error = (struct err){ .code = EIO, .text = "the process that changes the dump was ended" };
	f->begun_at = f->copied_at;
	pid_t child = child_start(0);
	if (child == 0) {
		signal(SIGXFSZ, SIG_IGN);
		close_others(f->directory, -1);
		_exit(change(f, what, &f->result->error) < 0);
	}
	if (child < 0)
		return err_sys(e, "no process can be made to change the dump");
	f->child = child;
	return await(f, patience, e);
}
