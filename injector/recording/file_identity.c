/* SPDX-License-Identifier: MIT */
#include "recording/file_identity.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

int file_identity_read(int directory, const char *name, struct file_identity *identity)
{
	struct statx st;

	if (statx(directory, name, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &st) < 0)
		return -errno;
	*identity = (struct file_identity){ .major = st.stx_dev_major, .minor = st.stx_dev_minor, .inode = st.stx_ino };
	if (st.stx_mask & STATX_BTIME) {
		identity->born_s = st.stx_btime.tv_sec;
		identity->born_ns = st.stx_btime.tv_nsec;
	}
	return 0;
}

bool file_identity_same(const struct file_identity *a, const struct file_identity *b)
{
	return a->major == b->major && a->minor == b->minor && a->inode == b->inode && a->born_s == b->born_s &&
	       a->born_ns == b->born_ns;
}
