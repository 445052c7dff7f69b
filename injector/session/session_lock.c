/* SPDX-License-Identifier: MIT */
#include "session_lock.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "cleanup.h"
#include "whole_io.h"

#define PID_FILE_SYSTEM 0x50494446 /* PID_FS_MAGIC of linux/magic.h */
#define TRIES 20u
#define PAUSE_NS 5000000
/* As /proc/locks has them, and then READ or WRITE: a stranger may hold it shared. */
#define LOCK_WORDS "FLOCK  ADVISORY  "
#define ANNOUNCED_WORDS "POSIX  ADVISORY  "

/* The descriptor that the lock is on: the pidfd where it has an inode of its own. */
static int open_lock(struct target *t, struct err *e)
{
	struct statfs system;
	char path[40];

	if (t->lock_fd >= 0)
		return 0;
	if (fstatfs(t->pidfd, &system) == 0 && system.f_type == PID_FILE_SYSTEM) {
		t->lock_fd = fcntl(t->pidfd, F_DUPFD_CLOEXEC, 0);
	} else {
		snprintf(path, sizeof path, "/proc/%d/stat", t->pid);
		t->lock_fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	return t->lock_fd < 0 ? err_sys(e, "cannot lock the process against another memattach") : 0;
}

/* The file of the lock as /proc/locks and /proc/PID/fdinfo write it. */
static bool lock_file(const struct target *t, char text[64])
{
	struct stat st;

	if (t->lock_fd < 0 || fstat(t->lock_fd, &st) < 0)
		return false;
	snprintf(text, 64, " %02x:%02x:%lu ", major(st.st_dev), minor(st.st_dev), (unsigned long)st.st_ino);
	return true;
}

/* A line "lock: 1: FLOCK  ADVISORY  WRITE PID device:inode 0 EOF", with or without its first word. Locks that are
 * waited for have another form. */
static bool line_has_lock(const char *line, const char *kind, const char *file, pid_t *holder)
{
	const char *words = strstr(line, kind);

	if (!words || strstr(line, "-> ") || !strstr(words, file))
		return false;
	*holder = (pid_t)atoi(words + strlen(kind) + strlen("WRITE"));
	return true;
}

void session_lock_release(struct target *t)
{
	if (t->lock_fd >= 0)
		close(t->lock_fd);
	t->lock_fd = -1;
}

static pid_t holder_of(const struct target *t, const char *kind)
{
	struct target look = *t;
	char file[64], line[256];
	pid_t holder = 0;
	struct err ignored;

	if (open_lock(&look, &ignored) < 0)
		return 0;
	AUTO_FCLOSE FILE *f = fopen("/proc/locks", "re");
	if (f && lock_file(&look, file))
		while (fgets(line, sizeof line, f) && !line_has_lock(line, kind, file, &holder))
			;
	if (look.lock_fd != t->lock_fd)
		close(look.lock_fd);
	return holder > 0 ? holder : 0;
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

static bool is_held_by_memattach(const struct target *t, pid_t holder, const char *kind)
{
	char path[300], file[64], text[4096];
	bool holds = false;
	pid_t ignored;

	snprintf(path, sizeof path, "/proc/%d/fdinfo", holder);
	DIR *dir = lock_file(t, file) && is_memattach(holder) ? opendir(path) : NULL;
	if (!dir)
		return false;
	for (struct dirent *entry; !holds && (entry = readdir(dir));) {
		snprintf(path, sizeof path, "/proc/%d/fdinfo/%.200s", holder, entry->d_name);
		holds = whole_text(path, text, sizeof text) == 0 && line_has_lock(text, kind, file, &ignored);
	}
	closedir(dir);
	return holds;
}

pid_t session_lock_holder(const struct target *t)
{
	return holder_of(t, LOCK_WORDS);
}

bool session_lock_is_memattach(const struct target *t, pid_t holder)
{
	return is_held_by_memattach(t, holder, LOCK_WORDS);
}

int session_lock_announce(struct target *t, struct err *e)
{
	const struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	struct target look = *t;

	if (t->announced_fd >= 0)
		return 0;
	look.lock_fd = -1;
	int rc = open_lock(&look, e);
	if (rc < 0)
		return rc;
	if (fcntl(look.lock_fd, F_SETLK, &lock) < 0) {
		rc = err_sys(e, "cannot say that a session is to come");
		close(look.lock_fd);
		return rc;
	}
	t->announced_fd = look.lock_fd;
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
	return holder_of(t, ANNOUNCED_WORDS);
}

bool session_lock_is_announced_by_memattach(const struct target *t, pid_t holder)
{
	return is_held_by_memattach(t, holder, ANNOUNCED_WORDS);
}

static int refuse(const struct target *t, pid_t holder, struct err *e)
{
	if (!holder)
		return err_set(e, EBUSY,
		               "a memattach that cannot be seen from here (in another PID namespace) is at work on it; "
		               "end it there");
	if (is_memattach(holder))
		return err_set(
			e, EBUSY,
			"it is being profiled already by memattach, PID %d; end that with memattach --detach -p %d",
			holder, t->pid);
	return err_set(e, EBUSY,
	               "PID %d holds the lock that keeps two memattach apart (flock on a pidfd), and is no memattach; "
	               "end that first",
	               holder);
}

int session_lock_take(struct target *t, pid_t *holder, struct err *e)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	*holder = 0;
	int rc = open_lock(t, e);
	if (rc < 0)
		return rc;
	/* A holder that nobody sees may have ended between the two looks. */
	for (unsigned i = 0; i < TRIES && !*holder; i++) {
		if (i)
			nanosleep(&pause, NULL);
		if (flock(t->lock_fd, LOCK_EX | LOCK_NB) == 0) {
			end_announcement(t);
			return 0;
		}
		if (errno != EWOULDBLOCK)
			return err_sys(e, "cannot lock the process against another memattach");
		*holder = session_lock_holder(t);
	}
	return refuse(t, *holder, e);
}
