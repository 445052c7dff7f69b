/* SPDX-License-Identifier: MIT */
#include "regular_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"

/* "/proc/self/fd/N", without stdio: this is for signal handlers, too. */
static void put_link(char link[32], int fd)
{
	char digits[12];
	size_t n = 0;
	char *at = stpcpy(link, "/proc/self/fd/");

	do
		digits[n++] = (char)('0' + fd % 10);
	while (fd /= 10);
	while (n)
		*at++ = digits[--n];
	*at = 0;
}

int regular_open_at(int directory, const char *path, int flags)
{
	AUTO_CLOSE int place = openat(directory, path, O_PATH | O_CLOEXEC | (flags & O_NOFOLLOW));
	struct stat st;
	char link[32];

	if (place < 0 || fstat(place, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ESPIPE;
	put_link(link, place);
	int fd = openat(AT_FDCWD, link, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

int regular_open(const char *path, struct err *e)
{
	int fd = regular_open_at(AT_FDCWD, path, 0);

	if (fd == -EISDIR)
		return err_set(e, EISDIR, "is a directory");
	if (fd == -ESPIPE)
		return err_set(e, ESPIPE, "not a regular file: a FIFO, a socket or a device is not opened");
	return fd < 0 ? err_set(e, -fd, "cannot open: %s", strerror(-fd)) : fd;
}
