/* SPDX-License-Identifier: MIT */
#include "session/session_lock.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "host/clocks.h"
#include "process/proc_status.h"
#include "files/whole_io.h"

#define PID_FILE_SYSTEM 0x50494446 /* PID_FS_MAGIC of linux/magic.h */
#define FIRST_PID_NAMESPACE "pid:[4026531836]"
#define TRIES 20u
#define ENDING_NS 10000000000ull /* for a holder that has been killed, on a machine that is busy */
#define HEIR_NS 3000000000ull    /* for a process of one that has ended */
#define PAUSE_NS 5000000
#define FILE_TEXT 64

/* As /proc/locks has them, and then READ or WRITE: a stranger may hold it shared. */
struct kind {
	const char *words;
	unsigned places; /* where it is looked for: the first so many of a target's */
};
static const struct kind locked = { "FLOCK  ADVISORY  ", TARGET_LOCKS }, announced = { "POSIX  ADVISORY  ", 1 };

/* ---- where the locks are ---- */

enum { AT_ENVIRON, AT_PIDFD };

/* -1: there is none. */
static int open_place(const struct target *t, unsigned place)
{
	struct statfs system;
	char path[40];

	if (place == AT_PIDFD)
		return fstatfs(t->pidfd, &system) == 0 && system.f_type == PID_FILE_SYSTEM
		               ? fcntl(t->pidfd, F_DUPFD_CLOEXEC, 0)
		               : -1;
	snprintf(path, sizeof path, "/proc/%d/environ", t->pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static int open_places(struct target *t, struct err *e)
{
	bool any = false;

	for (unsigned i = TARGET_LOCKS; i-- > 0;) {
		if (t->lock_fd[i] < 0)
			t->lock_fd[i] = open_place(t, i);
		any |= t->lock_fd[i] >= 0;
	}
	return any ? 0 : err_sys(e, "cannot lock the process against another memattach");
}

static void close_places(struct target *t)
{
	for (unsigned i = 0; i < TARGET_LOCKS; i++) {
		if (t->lock_fd[i] >= 0)
			close(t->lock_fd[i]);
		t->lock_fd[i] = -1;
	}
}

/* A pidfd is locked as long as a copy of it is open. */
void session_lock_release(struct target *t)
{
	for (unsigned i = 0; i < TARGET_LOCKS; i++)
		if (t->lock_fd[i] >= 0)
			flock(t->lock_fd[i], LOCK_UN);
	close_places(t);
}

/* ---- who has them ---- */

/* A file as /proc/locks and /proc/PID/fdinfo write it; "" if there is none. */
static void file_text(int fd, char text[FILE_TEXT])
{
	struct stat st;

	text[0] = '\0';
	if (fd >= 0 && fstat(fd, &st) == 0)
		snprintf(text, FILE_TEXT, " %02x:%02x:%lu ", major(st.st_dev), minor(st.st_dev),
		         (unsigned long)st.st_ino);
}

/* A line "lock: 1: FLOCK  ADVISORY  WRITE PID device:inode 0 EOF", with or without its first word. Locks that are
 * waited for have another form. */
static bool line_has_lock(const char *line, const struct kind *kind, const char *file, pid_t *taker)
{
	const char *words = strstr(line, kind->words);

	if (!file[0] || !words || strstr(line, "-> ") || !strstr(words, file))
		return false;
	*taker = (pid_t)atoi(words + strlen(kind->words) + strlen("WRITE"));
	return true;
}

/* Has the process a descriptor with that lock? The kernel tells it. *seen: its descriptors may be looked at. */
static bool has_lock(pid_t pid, const struct kind *kind, const char *file, bool *seen)
{
	char path[300], text[4096];
	bool has = false;
	pid_t ignored;

	snprintf(path, sizeof path, "/proc/%d/fdinfo", pid);
	DIR *dir = opendir(path);
	*seen = dir;
	for (struct dirent *entry; dir && !has && (entry = readdir(dir));) {
		snprintf(path, sizeof path, "/proc/%d/fdinfo/%.200s", pid, entry->d_name);
		has = whole_io_text(path, text, sizeof text) == 0 && line_has_lock(text, kind, file, &ignored);
	}
	if (dir)
		closedir(dir);
	return has;
}

static bool read_uids(pid_t pid, unsigned long uids[3])
{
	char status[STATUS_BYTES];
	const char *field;

	return proc_status_read(status, pid, 0) == 0 && (field = proc_status_field(status, "Uid")) &&
	       sscanf(field, "%lu %lu %lu", &uids[0], &uids[1], &uids[2]) == 3;
}

/* Neither root, nor this user, nor one of the target. */
static bool is_stranger(const struct target *t, pid_t pid)
{
	unsigned long own[3] = { 0 }, of_target[3] = { 0 };

	if (!read_uids(pid, own))
		return false;
	if (!read_uids(t->pid, of_target))
		of_target[0] = of_target[1] = of_target[2] = 0;
	for (unsigned i = 0; i < 2; i++) /* real and effective */
		if (own[i] != 0 && own[i] != geteuid() && own[i] != of_target[0] && own[i] != of_target[1] &&
		    own[i] != of_target[2])
			return true;
	return false;
}

/* The process that took it may have handed it on, have ended, and its number be another one's: then whoever has a
 * descriptor with it is looked for, one who is no stranger first. */
static pid_t search_holder(const struct target *t, const struct kind *kind, const char *file)
{
	pid_t found = 0;
	bool seen;
	DIR *dir = opendir("/proc");

	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)atoi(entry->d_name) : 0;
		if (!pid || !has_lock(pid, kind, file, &seen) || (found && is_stranger(t, pid)))
			continue;
		found = pid;
		if (!is_stranger(t, pid))
			break;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Who has taken the lock, of those that /proc/locks shows. *is_locked: there is one. */
static pid_t taker_of(const struct kind *kind, const char *file, bool *is_locked)
{
	char line[256];
	pid_t taker = 0;

	*is_locked = false;
	AUTO_FCLOSE FILE *f = file[0] ? fopen("/proc/locks", "re") : NULL;
	while (f && !*is_locked && fgets(line, sizeof line, f))
		*is_locked = line_has_lock(line, kind, file, &taker);
	return taker;
}

/* Who has the lock at a file; 0: nobody who can be seen from here. */
static pid_t holder_at(const struct target *t, const struct kind *kind, int fd)
{
	char file[FILE_TEXT];
	bool seen, is_locked;

	file_text(fd, file);
	const pid_t taker = taker_of(kind, file, &is_locked);
	if (!is_locked)
		return 0;
	if (taker > 0 && (has_lock(taker, kind, file, &seen) || (!seen && kill(taker, 0) < 0 && errno == EPERM)))
		return taker;
	return search_holder(t, kind, file);
}

static pid_t holder_of(const struct target *t, const struct kind *kind)
{
	pid_t holder = 0;

	for (unsigned i = 0; i < kind->places && !holder; i++) {
		int fd = t->lock_fd[i] >= 0 ? t->lock_fd[i] : open_place(t, i);
		holder = holder_at(t, kind, fd);
		if (holder && i == AT_PIDFD && is_stranger(t, holder))
			holder = 0;
		if (fd >= 0 && fd != t->lock_fd[i])
			close(fd);
	}
	return holder;
}

static bool is_memattach(pid_t pid)
{
	char path[40], program[512];

	snprintf(path, sizeof path, "/proc/%d/exe", pid);
	ssize_t n = readlink(path, program, sizeof program - 1);
	if (n <= 0)
		return false;
	program[n] = '\0';
	const char *slash = strrchr(program, '/');
	return slash && strncmp(slash + 1, "memattach", strlen("memattach")) == 0;
}

/* Has it been killed, and was not run since? */
static bool is_killed(pid_t pid)
{
	char pending[24] = "";

	proc_status_copy(pid, "SigPnd", pending, sizeof pending);
	return strtoull(pending, NULL, 16) >> (SIGKILL - 1) & 1;
}

/* Is it a process of a memattach that has ended, which has the lock because it was started with all descriptors? It is
 * about to close them or to end: the files of a session are made by such ones. */
static bool is_heir(const struct target *t, pid_t holder)
{
	bool is_locked = false;
	char file[FILE_TEXT];
	pid_t taker = 0;

	for (unsigned i = 0; i < TARGET_LOCKS && !is_locked; i++) {
		file_text(t->lock_fd[i], file);
		taker = taker_of(&locked, file, &is_locked);
	}
	return is_locked && taker != holder && is_memattach(holder);
}

bool session_lock_is_ending(pid_t pid)
{
	char path[40], program[8];

	if (is_killed(pid))
		return true;
	snprintf(path, sizeof path, "/proc/%d/exe", pid);
	return readlink(path, program, sizeof program) < 0 && errno == ENOENT;
}

static bool is_held_by_memattach(const struct target *t, pid_t holder, const struct kind *kind)
{
	bool holds = false, seen;
	char file[FILE_TEXT];

	if (!is_memattach(holder) || is_stranger(t, holder))
		return false;
	for (unsigned i = 0; i < kind->places && !holds; i++) {
		int fd = t->lock_fd[i] >= 0 ? t->lock_fd[i] : open_place(t, i);
		file_text(fd, file);
		holds = has_lock(holder, kind, file, &seen);
		if (fd >= 0 && fd != t->lock_fd[i])
			close(fd);
	}
	return holds;
}

pid_t session_lock_holder(const struct target *t)
{
	return holder_of(t, &locked);
}

bool session_lock_is_memattach(const struct target *t, pid_t holder)
{
	return is_held_by_memattach(t, holder, &locked);
}

void session_lock_describe(pid_t holder, char text[SESSION_LOCK_TEXT])
{
	unsigned long uids[3];
	char name[32] = "";

	proc_status_copy(holder, "Name", name, sizeof name);
	if (read_uids(holder, uids))
		snprintf(text, SESSION_LOCK_TEXT, "PID %d (%s, user %lu)", holder, name, uids[0]);
	else
		snprintf(text, SESSION_LOCK_TEXT, "PID %d", holder);
}

/* ---- announcing ---- */

int session_lock_announce(struct target *t, struct err *e)
{
	const struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };

	if (t->announced_fd >= 0)
		return 0;
	AUTO_CLOSE int fd = open_place(t, AT_ENVIRON);
	if (fd < 0 && (errno == EACCES || errno == EPERM))
		return 0; /* no session will come of it, which says why */
	if (fd < 0 || fcntl(fd, F_SETLK, &lock) < 0)
		return err_sys(e, "cannot say that a session is to come");
	t->announced_fd = cleanup_steal_fd(&fd);
	return 0;
}

/* The session is there: --detach finds it by its lock. */
static void end_announcement(struct target *t)
{
	if (t->announced_fd >= 0)
		close(t->announced_fd);
	t->announced_fd = -1;
}

pid_t session_lock_announced(const struct target *t)
{
	return holder_of(t, &announced);
}

bool session_lock_is_announced_by_memattach(const struct target *t, pid_t holder)
{
	return is_held_by_memattach(t, holder, &announced);
}

/* ---- taking ---- */

static int refuse(const struct target *t, pid_t holder, struct err *e)
{
	char who[SESSION_LOCK_TEXT];

	if (!holder)
		return err_set(e, EBUSY,
		               "a memattach that cannot be seen from here (in another PID namespace) is at work on it; "
		               "end it there");
	session_lock_describe(holder, who);
	if (is_memattach(holder))
		return err_set(e, EBUSY,
		               "it is being profiled already by memattach, %s; end that with memattach --detach -p %d",
		               who, t->pid);
	return err_set(e, EBUSY,
	               "%s holds the lock that keeps two memattach apart (flock), and cannot be shown to be a "
	               "memattach; end that first",
	               who);
}

/* Nobody who acts on processes of this machine can be invisible. */
static bool sees_all(void)
{
	char name[64] = "";

	return geteuid() == 0 && readlink("/proc/self/ns/pid", name, sizeof name - 1) > 0 &&
	       strcmp(name, FIRST_PID_NAMESPACE) == 0;
}

static int try_lock(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno == EWOULDBLOCK ? -EBUSY : -errno;
}

/* 0: taken. -EBUSY: by *holder, or somebody who is not seen. Others: it cannot be. */
static int try_places(const struct target *t, pid_t *holder)
{
	const int *fd = t->lock_fd;
	const bool first = fd[AT_ENVIRON] >= 0;
	int rc = first ? try_lock(fd[AT_ENVIRON]) : 0;

	if (rc == -EBUSY)
		*holder = holder_at(t, &locked, fd[AT_ENVIRON]);
	if (rc < 0 || fd[AT_PIDFD] < 0)
		return rc;
	rc = try_lock(fd[AT_PIDFD]);
	if (rc == -EBUSY) {
		*holder = holder_at(t, &locked, fd[AT_PIDFD]);
		if (first && (*holder ? is_stranger(t, *holder) : sees_all()))
			return 0;
	}
	if (rc < 0 && first)
		flock(fd[AT_ENVIRON], LOCK_UN);
	return rc;
}

static bool soon_ends(const struct target *t, pid_t holder, uint64_t waited_ns)
{
	return (session_lock_is_ending(holder) && waited_ns < ENDING_NS) || (is_heir(t, holder) && waited_ns < HEIR_NS);
}

int session_lock_take(struct target *t, pid_t *holder, struct err *e)
{
	*holder = 0;
	int rc = open_places(t, e);
	if (rc < 0)
		return rc;
	/* A holder that nobody sees may have ended between the two looks; one that is killed takes a moment to end. */
	const uint64_t since_ns = clock_monotonic_ns();
	unsigned unseen = 0; /* so many looks since one was seen */
	while ((rc = try_places(t, holder)) == -EBUSY) {
		unseen = *holder ? 0 : unseen + 1;
		if (*holder ? !soon_ends(t, *holder, clock_monotonic_ns() - since_ns) : unseen == TRIES)
			break;
		clock_pause(PAUSE_NS);
		*holder = 0;
	}
	if (rc == -EBUSY)
		return refuse(t, *holder, e);
	if (rc < 0)
		return err_set(e, -rc, "cannot lock the process against another memattach: %s", strerror(-rc));
	*holder = 0;
	end_announcement(t);
	return 0;
}
