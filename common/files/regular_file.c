/* SPDX-License-Identifier: MIT */
#include "files/regular_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/cleanup.h"

/* As linux/magic.h lacks them: fs/configfs, fs/fuse/control.c. */
#define CONFIGFS_MAGIC 0x62656570
#define FUSE_CTL_MAGIC 0x65735543

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

/* Does the kernel make up what is in the files of this file system? */
static bool shows_kernel(__fsword_t type)
{
	static const uint32_t types[] = { PROC_SUPER_MAGIC,    SYSFS_MAGIC,    DEBUGFS_MAGIC,        TRACEFS_MAGIC,
		                          SECURITYFS_MAGIC,    SELINUX_MAGIC,  SMACK_MAGIC,          CGROUP_SUPER_MAGIC,
		                          CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC,   PSTOREFS_MAGIC,       EFIVARFS_MAGIC,
		                          BINFMTFS_MAGIC,      NSFS_MAGIC,     RDTGROUP_SUPER_MAGIC, XENFS_SUPER_MAGIC,
		                          CONFIGFS_MAGIC,      FUSE_CTL_MAGIC, DEVPTS_SUPER_MAGIC };

	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if ((uint32_t)type == types[i])
			return true;
	return false;
}

int regular_file_reopen(int place)
{
	struct statfs system;
	struct stat st;
	char link[32];

	if (fstat(place, &st) || fstatfs(place, &system))
		return -errno;
	if (!S_ISREG(st.st_mode) || shows_kernel(system.f_type))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ESPIPE;
	put_link(link, place);
	int fd = openat(AT_FDCWD, link, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

int regular_file_open_at(int directory, const char *path, int flags)
{
	AUTO_CLOSE int place = openat(directory, path, O_PATH | O_CLOEXEC | (flags & O_NOFOLLOW));

	return place < 0 ? -errno : regular_file_reopen(place);
}

int regular_file_open(const char *path, struct err *e)
{
	int fd = regular_file_open_at(AT_FDCWD, path, 0);

	if (fd == -EISDIR)
		return err_set(e, EISDIR, "is a directory");
	if (fd == -ESPIPE)
		return err_set(e, ESPIPE,
		               "not a regular file: a FIFO, a socket, a device or what the kernel shows of itself is "
		               "not opened");
	return fd < 0 ? err_set(e, -fd, "cannot open: %s", strerror(-fd)) : fd;
}
