/* SPDX-License-Identifier: MIT */
#include "files/whole_io.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"

bool whole_io_pread(int fd, void *buffer, size_t bytes, uint64_t offset)
{
	size_t done = 0;

	if (offset > INT64_MAX || bytes > INT64_MAX - offset)
		return false;
	while (done < bytes) {
		ssize_t n = pread(fd, (char *)buffer + done, bytes - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

bool whole_io_pwrite(int fd, const void *data, size_t bytes, uint64_t offset)
{
	const char *at = data;

	while (bytes > 0) {
		ssize_t n = pwrite(fd, at, bytes, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		offset += (uint64_t)n;
		bytes -= (size_t)n;
	}
	return true;
}

int whole_io_text(const char *path, char *buffer, size_t size)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;

	if (fd < 0)
		return -errno;
	while (used < size - 1) {
		ssize_t n = read(fd, buffer + used, size - 1 - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		used += (size_t)n;
	}
	buffer[used] = '\0';
	return 0;
}
