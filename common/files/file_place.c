/* SPDX-License-Identifier: MIT */
#include "files/file_place.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "files/owner.h"

#define LINKS_MAX 40u /* as the kernel has it */

struct walk {
	int directory;
	char rest[PATH_MAX]; /* of the path */
	unsigned links;
	enum file_place_last last;
	bool magic;
};

bool file_place_trusts(uid_t uid)
{
	uid_t other;
	gid_t group;

	return uid == 0 || uid == geteuid() || (owner_is_other(&other, &group) && uid == other);
}

static int move_to(struct walk *w, int directory)
{
	if (directory < 0)
		return -errno;
	if (w->directory >= 0)
		close(w->directory);
	w->directory = directory;
	return 0;
}

static int begin(struct walk *w)
{
	return move_to(w, open(w->rest[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

static bool is_followed(const struct walk *w, const struct stat *link)
{
	struct stat there;

	if (file_place_trusts(link->st_uid))
		return link->st_nlink == 1;
	return geteuid() != 0 && fstat(w->directory, &there) == 0 && there.st_uid == link->st_uid;
}

/* The path goes on as the link says. */
static int follow(struct walk *w, int link, const char *after)
{
	char target[PATH_MAX], rest[PATH_MAX];

	ssize_t n = readlinkat(link, "", target, sizeof target);
	if (n <= 0 || w->links++ >= LINKS_MAX)
		return n < 0 ? -errno : -ELOOP;
	if ((size_t)n >= sizeof target ||
	    (size_t)snprintf(rest, sizeof rest, "%.*s%s", (int)n, target, after) >= sizeof rest)
		return -ENAMETOOLONG;
	memcpy(w->rest, rest, sizeof rest);
	return target[0] == '/' ? begin(w) : 0;
}

static bool is_of_proc(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* 1: the name is what was looked for; 0: the walk goes on. after: what follows the name, "" or "/…" */
static int step(struct walk *w, const char *name, const char *after)
{
	bool last = after[0] == '\0';
	AUTO_CLOSE int fd = openat(w->directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && last && errno == ENOENT)
		return 1;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	bool magic = S_ISLNK(st.st_mode) && is_of_proc(fd);
	if (last && (!S_ISLNK(st.st_mode) || magic || w->last == PLACE_KEEP_LINK)) {
		w->magic = magic;
		return 1;
	}
	if (S_ISLNK(st.st_mode) && !magic)
		return is_followed(w, &st) ? follow(w, fd, after) : -ELOOP;
	memmove(w->rest, after, strlen(after) + 1);
	return move_to(w, openat(w->directory, name, O_PATH | O_DIRECTORY | O_CLOEXEC | (magic ? 0 : O_NOFOLLOW)));
}

static bool is_name(const char *name)
{
	return name[0] && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static int walk(struct walk *w, char name[NAME_MAX + 1])
{
	int rc = begin(w);

	while (rc == 0) {
		const char *start = w->rest + strspn(w->rest, "/");
		size_t length = strcspn(start, "/");
		if (length > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, start, length);
		name[length] = '\0';
		if (!start[length] && !is_name(name))
			return -EISDIR;
		rc = step(w, name, start + length);
	}
	return rc;
}

int file_place_open(struct file_place *place, const char *path, enum file_place_last last, struct err *e)
{
	struct walk w = { .directory = -1, .last = last };
	struct file_place p = { .directory = -1 };

	if ((size_t)snprintf(w.rest, sizeof w.rest, "%s", path) >= sizeof w.rest)
		return err_set(e, ENAMETOOLONG, "%s", strerror(ENAMETOOLONG));
	int rc = path[0] ? walk(&w, p.name) : -ENOENT;
	p.directory = w.directory;
	p.magic = w.magic;
	if (rc > 0) {
		*place = p;
		return 0;
	}
	file_place_close(&p);
	if (rc == -ELOOP && w.links < LINKS_MAX)
		return err_set(e, ELOOP, "%s is a symbolic link of another user, which is not followed", p.name);
	return err_set(e, -rc, "%s", strerror(-rc));
}

void file_place_close(struct file_place *place)
{
	if (place->directory >= 0)
		close(place->directory);
	place->directory = -1;
}

bool file_place_is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}
