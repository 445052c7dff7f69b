/* SPDX-License-Identifier: MIT */
/*
 * Whose the files are that we make. Under sudo they belong to the user who typed it (SUDO_UID, SUDO_GID): a dump that
 * only root can read is of no use to him, and he may do as root whatever we do.
 *
 * The two variables are believed only where this process is root by both its real and its effective user: then whoever
 * could set them could do as root what he likes. A change is made by descriptor, of a file that this process has just
 * created: what has been put under its name meanwhile is left alone.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Are files given to somebody else? uid and gid are his then. */
bool owner_is_other(uid_t *uid, gid_t *gid);
/* Parses what the two variables hold; false: not two numbers of users, or root's. For owner_is_other, and tests. */
bool owner_parse(const char *uid_text, const char *gid_text, uid_t *uid, gid_t *gid);
/* For a descriptor of a file that this process has created. A file system that refuses leaves it root's. */
void owner_give(int fd);
