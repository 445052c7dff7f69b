/* SPDX-License-Identifier: MIT */
#include "whole_io.h"

#include <errno.h>
#include <unistd.h>

bool pread_all(int fd, void *buffer, size_t bytes, uint64_t offset)
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

bool pwrite_all(int fd, const void *data, size_t bytes, uint64_t offset)
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
