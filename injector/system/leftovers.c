/* SPDX-License-Identifier: MIT */
#include "system/leftovers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "host/clocks.h"
#include "host/say.h"
#include "launch/session_process.h"
#include "maps/maps.h"
#include "process/proc_status.h"
#include "process/target.h"
#include "session/session_lock.h"

#define OUR_NAMES "/memfd:memattach-"
#define SUPERVISOR_MS 300000
#define AT_ONCE 4u
#define SAY_NS 5000000000ull
#define PAGE_BYTES 4096u
#define PAGE_PRESENT (1ull << 63)
#define PAGE_OF_FILE (1ull << 61)

/* A page of the file's own is the file's; one that was written to is not. */
static bool was_written(int pagemap, uint64_t address)
{
	uint64_t entry;

	if (pread(pagemap, &entry, sizeof entry, (off_t)(address / PAGE_BYTES * sizeof entry)) != sizeof entry)
		return false;
	return (entry & PAGE_PRESENT) && !(entry & PAGE_OF_FILE);
}

/* Is something of ours there, or may be? */
static bool has_something(pid_t pid)
{
	char path[40];
	struct maps maps;
	bool found = false;

	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	if (maps_read(&maps, path, ERR_IGNORED) < 0)
		return false;
	snprintf(path, sizeof path, "/proc/%d/pagemap", pid);
	AUTO_CLOSE int pagemap = open(path, O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; i < maps.count && !found; i++) {
		const struct mapping *m = &maps.list[i];
		found = strncmp(m->path, OUR_NAMES, strlen(OUR_NAMES)) == 0 ||
		        ((m->prot & PROT_EXEC) && m->inode && pagemap >= 0 && was_written(pagemap, m->end - 1));
	}
	maps_free(&maps);
	return found;
}

static bool same_program(pid_t a, pid_t b)
{
	struct stat x, y;
	char path[40];

	snprintf(path, sizeof path, "/proc/%d/exe", a);
	if (stat(path, &x) < 0)
		return false;
	snprintf(path, sizeof path, "/proc/%d/exe", b);
	return stat(path, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int find(struct chosen_list *l, const struct leftovers_options *o, struct err *e)
{
	DIR *proc = opendir("/proc");
	struct chosen found;
	int rc = 0;

	if (!proc)
		return err_sys(e, "cannot read /proc");
	for (struct dirent *entry; rc == 0 && (entry = readdir(proc));) {
		pid_t pid = (pid_t)atoi(entry->d_name);
		if (pid <= 0 || same_program(pid, getpid()) || chosen_look(&found, pid, ERR_IGNORED) < 0 ||
		    (o->what && !chosen_fits(pid, o->by, o->what)) || !has_something(pid))
			continue;
		if (!grow_list(l->list, l->count))
			rc = err_set(e, ENOMEM, "out of memory");
		else
			l->list[l->count++] = found;
	}
	closedir(proc);
	return rc;
}

/* ---- who supervises ---- */

/* The memattach that has started the one that runs the session of this process; 0: none. */
static pid_t supervisor_of(pid_t pid)
{
	char status[STATUS_BYTES];
	struct target t;
	pid_t parent = 0;

	if (target_open(&t, pid, ERR_IGNORED) < 0)
		return 0;
	pid_t holder = session_lock_holder(&t);
	if (holder && session_lock_is_memattach(&t, holder) && proc_status_read(status, holder, 0) == 0)
		parent = (pid_t)proc_status_number(status, "PPid", 10, 0);
	target_close(&t);
	return parent > 1 && parent != getpid() && same_program(parent, holder) ? parent : 0;
}

static void say(const struct leftovers_options *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(const struct leftovers_options *o, const char *format, ...)
{
	va_list ap;

	if (o->quiet)
		return;
	va_start(ap, format);
	say_line(stderr, 0, format, ap);
	va_end(ap);
}

/* It has its sessions detach, and ends. */
static void end_supervisor(const struct leftovers_options *o, pid_t target, pid_t supervisor)
{
	AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, supervisor, 0);
	struct pollfd end = { .fd = pidfd, .events = POLLIN };

	/* Its number may be another process's by now. */
	if (pidfd < 0 || supervisor_of(target) != supervisor ||
	    syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0) < 0)
		return;
	say(o, "memattach, PID %d, which has sessions in several processes, was told to end", supervisor);
	if (poll(&end, 1, SUPERVISOR_MS) == 0)
		say_error(0, "PID %d has not ended within %d s", supervisor, SUPERVISOR_MS / 1000);
}

/* Those of all that were found. One that has just been told is not there any more. */
static bool end_supervisors(const struct leftovers_options *o, const struct chosen_list *l)
{
	bool found = false;

	for (size_t i = 0; i < l->count; i++) {
		pid_t supervisor = supervisor_of(l->list[i].pid);
		if (supervisor)
			end_supervisor(o, l->list[i].pid, supervisor);
		found |= supervisor != 0;
	}
	return found;
}

/* ---- all of it ---- */

struct beginning {
	const struct leftovers_options *o;
	const struct chosen *target;
};

static int run_detach(void *context)
{
	const struct beginning *b = context;

	return (int)b->o->detach(b->o->context, b->target);
}

/* Nothing of memattach is in it any more. */
static bool has_ended(const struct chosen *target)
{
	struct chosen now;
	struct err ended;

	return chosen_look(&now, target->pid, &ended) < 0 || now.start_ticks != target->start_ticks;
}

static enum member_outcome outcome_of(const struct chosen *target, int status)
{
	enum member_outcome outcome = session_process_outcome(status, AFTER_NOTHING);

	return outcome == OUTCOME_NOT_ATTACHED && has_ended(target) ? OUTCOME_TOO_LATE : outcome;
}

/* A few at once: one whose threads do not stop before the deadline keeps no other waiting. */
static void detach_all(const struct leftovers_options *o, const struct chosen_list *l, unsigned ended[OUTCOMES])
{
	struct {
		pid_t child; /* 0: none */
		const struct chosen *target;
	} running[AT_ONCE] = { 0 };
	uint64_t said_ns = clock_monotonic_ns();
	size_t begun = 0, done = 0;
	int status;

	while (done < l->count) {
		for (size_t i = 0; i < AT_ONCE && begun < l->count; i++) {
			if (running[i].child)
				continue;
			struct beginning b = { o, &l->list[begun++] };
			pid_t child = session_process_begin(run_detach, &b);
			running[i].child = child > 0 ? child : 0;
			running[i].target = b.target;
			if (child <= 0) {
				ended[OUTCOME_NOT_ATTACHED]++;
				done++;
			}
		}
		pid_t child = begun > done ? waitpid(-1, &status, 0) : 0;
		for (size_t i = 0; child > 0 && i < AT_ONCE; i++) {
			if (running[i].child != child)
				continue;
			ended[outcome_of(running[i].target, status)]++;
			running[i].child = 0;
			done++;
		}
		if (clock_monotonic_ns() < said_ns + SAY_NS || done == l->count)
			continue;
		say(o, "%zu of %zu processes are done", done, l->count);
		said_ns = clock_monotonic_ns();
	}
}

enum exit_status leftovers_take_out(const struct leftovers_options *o)
{
	struct chosen_list l = { 0 };
	unsigned ended[OUTCOMES] = { 0 };
	char text[200];
	struct err e;

	int rc = find(&l, o, &e);
	if (rc == 0 && end_supervisors(o, &l)) {
		chosen_free(&l);
		rc = find(&l, o, &e);
	}
	if (rc == 0)
		detach_all(o, &l, ended);
	else
		say_error(0, "%s", e.text);
	session_process_sum(ended, text, sizeof text);
	if (rc == 0 && l.count)
		say(o, "%zu processes were looked at:%s", l.count, text);
	else if (rc == 0)
		say(o, "nothing of memattach is in any process");
	chosen_free(&l);
	return rc < 0 ? EXIT_NOT_ATTACHED : session_process_worst(ended);
}
