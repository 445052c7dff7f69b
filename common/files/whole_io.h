/* SPDX-License-Identifier: MIT */
/* Reads and writes of a file that are done wholly or count as failed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False: an error, with errno, or the end of the file; the buffer is then undefined. */
bool whole_io_pread(int fd, void *buffer, size_t bytes, uint64_t offset);
/* False: an error, with errno; a part may have been written. */
bool whole_io_pwrite(int fd, const void *data, size_t bytes, uint64_t offset);
/* A small text file, as in /proc, NUL-terminated; what does not fit is cut. 0 or -errno. */
int whole_io_text(const char *path, char *buffer, size_t size);
