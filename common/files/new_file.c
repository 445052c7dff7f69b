/* SPDX-License-Identifier: MIT */
#include "files/new_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "files/file_place.h"
#include "files/owner.h"

#define BEFORE ".memattach-"
#define AFTER ".part"
#define DIGITS 16
#define OLD_S 3600

/* Not by a number of a process: those of several containers are the same in a directory that they share, and can be
 * foreseen. */
void new_file_choose_name(struct new_file *file)
{
	struct timespec now = { 0 };
	uint64_t number;

	if (getrandom(&number, sizeof number, 0) != sizeof number) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		number = (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec << 20 ^ (uint64_t)getpid();
	}
	*file = (struct new_file){ .named = false };
	snprintf(file->temporary, sizeof file->temporary, BEFORE "%0*llx" AFTER, DIGITS, (unsigned long long)number);
}

int new_file_open(struct new_file *file, int directory, mode_t mode)
{
	int fd = openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);

	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
		fd = openat(directory, file->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
		file->named = fd >= 0;
	}
	if (fd < 0)
		return -errno;
	owner_give(fd);
	return fd;
}

int new_file_name(struct new_file *file, int directory, int fd, const char *name)
{
	char self[40];

	if (file->named) {
		if (renameat2(directory, file->temporary, directory, name, RENAME_NOREPLACE) < 0)
			return -errno;
		file->named = false;
		return 0;
	}
	snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, self, directory, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* Only rename replaces what is there. */
int new_file_replace(struct new_file *file, int directory, int fd, const char *name)
{
	if (!file->named) {
		int rc = new_file_name(file, directory, fd, file->temporary);
		if (rc < 0)
			return rc;
		file->named = true;
	}
	if (renameat(directory, file->temporary, directory, name) < 0)
		return -errno;
	file->named = false;
	return 0;
}

void new_file_remove(struct new_file *file, int directory)
{
	if (file->named)
		unlinkat(directory, file->temporary, 0);
	file->named = false;
}

static bool is_temporary(const char *name)
{
	const char *digits = name + strlen(BEFORE);

	return strncmp(name, BEFORE, strlen(BEFORE)) == 0 && strspn(digits, "0123456789abcdef") == DIGITS &&
	       strcmp(digits + DIGITS, AFTER) == 0;
}

void new_file_sweep(const char *directory)
{
	DIR *d = opendir(directory);
	time_t now = time(NULL);
	struct stat st;

	if (!d)
		return;
	for (struct dirent *entry; (entry = readdir(d));)
		if (is_temporary(entry->d_name) && fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode) && file_place_trusts(st.st_uid) && now - st.st_mtime > OLD_S)
			unlinkat(dirfd(d), entry->d_name, 0);
	closedir(d);
}
