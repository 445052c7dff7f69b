/* SPDX-License-Identifier: MIT */
#include "files/output_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define MODE 0666
#define OWN_MODE 0600

static int say(const struct output_file *f, int rc, struct err *e)
{
	if (rc == -ENXIO)
		return err_set(e, ENXIO, "cannot write %s: it is a FIFO that nobody reads, or a socket", f->path);
	return err_set(e, -rc, "cannot write %s: %s", f->path, strerror(-rc));
}

static bool is_stdout(const struct output_file *f)
{
	return !strcmp(f->path, "-");
}

/* Who may read the file that is replaced may read the new one, and nobody else; a file of somebody else may take
 * rights away, but gives none. */
static int set_mode(int fd, const struct stat *old)
{
	struct stat now;

	if (fstat(fd, &now) < 0)
		return -errno;
	mode_t mode = file_place_trusts(old->st_uid) ? old->st_mode & 0777 : old->st_mode & now.st_mode & 0777;
	return fchmod(fd, mode) < 0 ? -errno : 0;
}

static int open_new(struct output_file *f, const struct stat *old, enum output_use use)
{
	new_file_choose_name(&f->file);
	AUTO_CLOSE int fd = new_file_open(&f->file, f->place.directory, use == OUTPUT_OF_SESSION ? OWN_MODE : MODE);
	if (fd < 0)
		return fd;
	int rc = old ? set_mode(fd, old) : 0;
	if (rc < 0)
		return rc;
	f->replaces = true;
	return cleanup_steal_fd(&fd);
}

/* In a directory where everybody has files of his own, as /tmp, each is left to its owner. */
static bool is_left_alone(const struct output_file *f, const struct stat *old)
{
	struct stat directory;

	return !file_place_trusts(old->st_uid) && fstat(f->place.directory, &directory) == 0 &&
	       directory.st_mode & S_ISVTX && directory.st_uid != geteuid();
}

/* A FIFO, a device: what is looked at is what is opened. Only devices can be of nobody's making. */
static int open_special(const struct output_file *f, enum output_use use)
{
	AUTO_CLOSE int fd = openat(f->place.directory, f->place.name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	char self[40];

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
		return -EAGAIN;
	if (!S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode) && geteuid() == 0 && !file_place_trusts(st.st_uid))
		return -EACCES;
	snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
	const bool never_waits = use == OUTPUT_OF_SESSION && S_ISFIFO(st.st_mode);
	AUTO_CLOSE int opened = open(self, O_WRONLY | O_CLOEXEC | O_NOCTTY | (never_waits ? O_NONBLOCK : 0));
	if (opened < 0 || (never_waits && fcntl(opened, F_SETFL, 0) < 0))
		return -errno;
	return cleanup_steal_fd(&opened);
}

static int open_descriptor(struct output_file *f, enum output_use use, struct err *e)
{
	const struct file_place *p = &f->place;
	struct stat there;
	int fd;

	int rc = file_place_open(&f->place, f->path, PLACE_FOLLOW_LINK, e);
	if (rc < 0)
		return err_prefix(e, "cannot write %s", f->path);
	if (p->magic) {
		fd = openat(p->directory, p->name, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
		return fd < 0 ? say(f, -errno, e) : fd;
	}
	if (fstatat(p->directory, p->name, &there, AT_SYMLINK_NOFOLLOW))
		fd = errno == ENOENT ? open_new(f, NULL, use) : -errno;
	else if (S_ISREG(there.st_mode) && is_left_alone(f, &there))
		return err_set(e, EACCES, "cannot write %s: there is a file of another user", f->path);
	else if (S_ISREG(there.st_mode))
		fd = open_new(f, &there, use);
	else
		fd = S_ISDIR(there.st_mode) ? -EISDIR : open_special(f, use);
	return fd < 0 ? say(f, fd, e) : fd;
}

int output_file_open(struct output_file *f, const char *path, enum output_use use, struct err *e)
{
	*f = (struct output_file){ .path = path, .place.directory = -1 };
	if (is_stdout(f)) {
		f->stream = stdout;
		return 0;
	}
	AUTO_CLOSE int fd = open_descriptor(f, use, e);
	int r = fd < 0 ? fd : 0;
	if (!r) {
		f->stream = fdopen(fd, "w");
		r = f->stream ? 0 : say(f, -errno, e);
	}
	if (r)
		output_file_done(f);
	else
		cleanup_steal_fd(&fd);
	return r;
}

static int take_place(struct output_file *f)
{
	if (fsync(fileno(f->stream)))
		return -errno;
	return new_file_replace(&f->file, f->place.directory, fileno(f->stream), f->place.name);
}

/* What a full disk refuses may be known only when the file is closed. */
static int close_stream(struct output_file *f)
{
	FILE *stream = f->stream;

	f->stream = NULL;
	return fclose(stream) ? -errno : 0;
}

int output_file_finish(struct output_file *f, struct err *e)
{
	/* Without a cause in errno it was an earlier write that failed. */
	bool bad = fflush(f->stream) || ferror(f->stream);

	if (bad)
		return say(f, -errno, e);
	if (is_stdout(f))
		return 0;
	int r = f->replaces ? take_place(f) : 0;
	r = r ?: close_stream(f);
	return r ? say(f, r, e) : 0;
}

void output_file_done(struct output_file *f)
{
	if (f->stream && !is_stdout(f))
		fclose(f->stream);
	new_file_remove(&f->file, f->place.directory);
	file_place_close(&f->place);
	*f = (struct output_file){ .path = f->path, .place.directory = -1 };
}

bool output_file_is(const struct output_file *f, const char *path)
{
	struct stat mine, other;

	if (is_stdout(f) || stat(path, &other))
		return false;
	int failed = f->replaces ? fstatat(f->place.directory, f->place.name, &mine, AT_SYMLINK_NOFOLLOW)
	                         : fstat(fileno(f->stream), &mine);
	return !failed && mine.st_dev == other.st_dev && mine.st_ino == other.st_ino;
}
