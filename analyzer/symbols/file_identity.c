/* SPDX-License-Identifier: MIT */
#include "file_identity.h"

#include <sys/stat.h>

#include "cache_dir.h"

static uint64_t identity_of(const struct stat *st)
{
	const uint64_t parts[] = { st->st_ino,
		                   (uint64_t)st->st_size,
		                   (uint64_t)st->st_mtim.tv_sec,
		                   (uint64_t)st->st_mtim.tv_nsec,
		                   (uint64_t)st->st_ctim.tv_sec,
		                   (uint64_t)st->st_ctim.tv_nsec };
	uint64_t identity = cache_hash(parts, sizeof parts, 0);

	return identity ? identity : 1;
}

uint64_t file_identity(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : identity_of(&st);
}

uint64_t file_identity_fd(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : identity_of(&st);
}
