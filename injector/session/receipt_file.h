/* SPDX-License-Identifier: MIT */
/* The file of a receipt, and strings in it. */
#ifndef MEMATTACH_RECEIPT_FILE_H
#define MEMATTACH_RECEIPT_FILE_H

#include <stdio.h>

#include "base/err.h"

/*
 * A new file, mode 0600, under sudo of the user who typed it (owner.h), or a regular file of before, which is emptied.
 * *f is for writing. -ELOOP: a symbolic link, which is not followed; -EINVAL: no regular file.
 */
int receipt_file_open(FILE **f, const char *path, struct err *e) WARN_UNUSED;
/* Closes it; an error of any write since is told here. */
int receipt_file_close(FILE *f, const char *path, struct err *e) WARN_UNUSED;

/* text[length] as a string of JSON, as json_string writes it: valid for all bytes. */
void receipt_file_string(FILE *f, const char *text, size_t length);

#endif
