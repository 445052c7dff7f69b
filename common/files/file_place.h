/* SPDX-License-Identifier: MIT */
/*
 * Where a file is to be: its directory, open, and its name there. What is done later is done by these two, so nobody
 * can lead it elsewhere meanwhile by exchanging a part of the path.
 *
 * A symbolic link on the way is a wish of whoever made it. It is followed if that is this user, root, or under sudo who
 * typed the command (owner.h); for a user who is not root also if its directory belongs to who made it, as the kernel
 * has it for links in /tmp (fs.protected_symlinks). So who may write in a directory cannot have root write elsewhere.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/err.h"

struct file_place {
	int directory; /* O_PATH, -1: closed */
	char name[NAME_MAX + 1];
	bool magic; /* the name is a link of /proc, which stands for an open file */
};

enum file_place_last { PLACE_KEEP_LINK, PLACE_FOLLOW_LINK };

/* last: what becomes of a link that is the last part of the path itself. -ELOOP: a link that is not followed; -EISDIR:
 * the path can only be a directory. The text names the part that it is about. */
int file_place_open(struct file_place *place, const char *path, enum file_place_last last, struct err *e) WARN_UNUSED;
void file_place_close(struct file_place *place);

/* Does the path lead to a directory, through links too? */
bool file_place_is_directory(const char *path);

/* May what belongs to this user be what this process was meant to find? Itself, root, or who typed sudo. */
bool file_place_trusts(uid_t uid);
