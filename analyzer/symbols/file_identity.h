/* SPDX-License-Identifier: MIT */
/* Whether a file is still the one it was: its inode, size, and times of modification and change, as one number. */
#ifndef MEMATTACH_FILE_IDENTITY_H
#define MEMATTACH_FILE_IDENTITY_H

#include <stdint.h>

/* 0: there is no such file. Numbers of devices are left out: they may be others after each boot. */
uint64_t file_identity(const char *path);
uint64_t file_identity_fd(int fd);

#endif
