/* SPDX-License-Identifier: MIT */
/*
 * A file that has no name until it is whole (O_TMPFILE), or where the file system knows no such files, one beside that
 * nobody can foresee. All is done by the descriptor of the directory; no link is followed.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct new_file {
	char temporary[40]; /* its name before it has its own */
	bool named;         /* it has that now */
};

/* To be called first. */
void new_file_choose_name(struct new_file *file);
/* A descriptor to read and write, or -errno. Under sudo the file belongs to who typed it (owner.h). */
int new_file_open(struct new_file *file, int directory, mode_t mode) WARN_UNUSED;
/* Gives it a name that nothing has; -EEXIST and others. */
int new_file_name(struct new_file *file, int directory, int fd, const char *name) WARN_UNUSED;
/* Puts it in the place of what has the name; that is replaced, not followed. */
int new_file_replace(struct new_file *file, int directory, int fd, const char *name) WARN_UNUSED;
/* Removes the temporary name, if it has that. */
void new_file_remove(struct new_file *file, int directory);
/* Removes temporary names that nobody has written to for an hour: who was to give them their own was killed. */
void new_file_sweep(const char *directory);
