/* SPDX-License-Identifier: MIT */
/* Which file it is that a name leads to, to tell one that memattach has written from what somebody else put there. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* An inode number alone is given out again when its file is removed. */
struct file_identity {
	uint32_t major, minor;
	uint64_t inode;
	int64_t born_s;
	uint32_t born_ns; /* 0 where the file system does not keep it */
};

/* Of an open file where name is "", else of what is there, links themselves included. -errno */
int file_identity_read(int directory, const char *name, struct file_identity *identity);
bool file_identity_same(const struct file_identity *a, const struct file_identity *b);
