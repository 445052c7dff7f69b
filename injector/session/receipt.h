/* SPDX-License-Identifier: MIT */
/* The receipt: what a session did to the target, and what of it is left. */
#pragma once

#include "session/session.h"

/* Compares the target with the snapshot from before attach; adds what is left of memattach to the residue. */
int receipt_verify(struct session *s, struct err *e) WARN_UNUSED;
/* Writes the JSON (memattach(1), "RECEIPT") to the file of --receipt, if there is one. */
int receipt_write(const struct session *s, struct err *e) WARN_UNUSED;

/* ---- its file, and strings in it ---- */

/*
 * A new file, mode 0600, under sudo of the user who typed it (owner.h), or a regular file of before, which is emptied.
 * *f is for writing. -ELOOP: a symbolic link, which is not followed; -EINVAL: no regular file.
 */
int receipt_file_open(FILE **f, const char *path, struct err *e) WARN_UNUSED;
/* Closes it; an error of any write since is told here. */
int receipt_file_close(FILE *f, const char *path, struct err *e) WARN_UNUSED;

/* text[length] as a string of JSON, as json_string writes it: valid for all bytes. */
void receipt_file_string(FILE *f, const char *text, size_t length);
