/* SPDX-License-Identifier: MIT */
#include "recording/other_folder.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define LEAST_BYTES (16u << 20)

static bool has_room(const char *folder, uint64_t bytes)
{
	struct statvfs s;

	return statvfs(folder, &s) == 0 && (uint64_t)s.f_bavail * s.f_frsize / 2 > bytes + LEAST_BYTES;
}

const char *other_folder(int directory, uint64_t bytes)
{
	const char *const folders[] = { getenv("TMPDIR"), "/var/tmp", "/tmp" };
	struct stat full, other;
	bool known = directory >= 0 && fstat(directory, &full) == 0;

	for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
		if (folders[i] && folders[i][0] == '/' && stat(folders[i], &other) == 0 && S_ISDIR(other.st_mode) &&
		    !(known && full.st_dev == other.st_dev) && access(folders[i], W_OK | X_OK) == 0 &&
		    has_room(folders[i], bytes))
			return folders[i];
	return NULL;
}

bool other_folder_helps(int code)
{
	return code == ENOSPC || code == EDQUOT;
}
