/* SPDX-License-Identifier: MIT */
#include "output_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "owner.h"

static int say(const struct output_file *f, struct err *e)
{
	return err_sys(e, "cannot write %s", f->path);
}

static bool is_stdout(const struct output_file *f)
{
	return !strcmp(f->path, "-");
}

/* The name beside the target that it has until it is whole. */
static char *make_beside(const char *target)
{
	char *beside = NULL;

	return asprintf(&beside, "%s.%d.part", target, (int)getpid()) < 0 ? NULL : beside;
}

static int open_unnamed(const char *target)
{
	AUTO_FREE char *directory = strdup(target);
	char *slash = directory ? strrchr(directory, '/') : NULL;

	if (!directory)
		return -1;
	if (slash)
		slash[slash == directory] = 0;
	return open(slash ? directory : ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
}

/* A file without a name; where the file system knows none, one with the name beside. */
static int open_beside(struct output_file *f)
{
	int fd = open_unnamed(f->target);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd;
	fd = open(f->beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	f->named = fd >= 0;
	return fd;
}

/* Who may read the file that is replaced may read the new one, and nobody else. */
static int open_new(struct output_file *f, const struct stat *old)
{
	f->target = old ? realpath(f->path, NULL) : strdup(f->path);
	f->beside = f->target ? make_beside(f->target) : NULL;
	int fd = f->beside ? open_beside(f) : -1;

	if (fd >= 0 && old && fchmod(fd, old->st_mode & 0777)) {
		close(fd);
		return -1;
	}
	if (fd >= 0)
		owner_give(fd);
	return fd;
}

static int open_descriptor(struct output_file *f)
{
	struct stat there;

	if (stat(f->path, &there))
		return errno == ENOENT ? open_new(f, NULL) : -1;
	if (S_ISREG(there.st_mode))
		return open_new(f, &there);
	if (S_ISDIR(there.st_mode)) {
		errno = EISDIR;
		return -1;
	}
	return open(f->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
}

int output_file_open(struct output_file *f, const char *path, struct err *e)
{
	*f = (struct output_file){ .path = path };
	if (is_stdout(f)) {
		f->stream = stdout;
		return 0;
	}
	AUTO_CLOSE int fd = open_descriptor(f);
	int r = fd < 0 ? say(f, e) : 0;
	if (!r) {
		f->stream = fdopen(fd, "w");
		r = f->stream ? 0 : say(f, e);
	}
	if (r)
		output_file_done(f);
	else
		steal_fd(&fd);
	return r;
}

/* The name beside comes first: only rename replaces what is there. */
static int give_name(struct output_file *f)
{
	char self[40];

	if (!f->named) {
		snprintf(self, sizeof self, "/proc/self/fd/%d", fileno(f->stream));
		if (linkat(AT_FDCWD, self, AT_FDCWD, f->beside, AT_SYMLINK_FOLLOW))
			return -1;
		f->named = true;
	}
	if (rename(f->beside, f->target))
		return -1;
	f->named = false;
	return 0;
}

/* What a full disk refuses may be known only when the file is closed. */
static int close_stream(struct output_file *f)
{
	FILE *stream = f->stream;

	f->stream = NULL;
	return fclose(stream);
}

int output_file_finish(struct output_file *f, struct err *e)
{
	/* Without a cause in errno it was an earlier write that failed. */
	bool bad = fflush(f->stream) || ferror(f->stream);

	if (bad)
		return say(f, e);
	if (is_stdout(f))
		return 0;
	if (f->target && (fsync(fileno(f->stream)) || give_name(f)))
		return say(f, e);
	return close_stream(f) ? say(f, e) : 0;
}

void output_file_done(struct output_file *f)
{
	if (f->stream && !is_stdout(f))
		fclose(f->stream);
	if (f->named)
		unlink(f->beside);
	free(f->target);
	free(f->beside);
	*f = (struct output_file){ .path = f->path };
}

bool output_file_is(const struct output_file *f, const char *path)
{
	struct stat mine, other;

	return !is_stdout(f) && !stat(f->path, &mine) && !stat(path, &other) && mine.st_dev == other.st_dev &&
	       mine.st_ino == other.st_ino;
}
