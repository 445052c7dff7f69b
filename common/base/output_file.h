/* SPDX-License-Identifier: MIT */
/*
 * A file that takes its name when it is whole. Until then it has none, where the file system can do that (O_TMPFILE),
 * else one beside, so whatever ends the program before leaves what was there. Links are followed first: they stay. What
 * is there and is no regular file (a FIFO, a device, /dev/stdout) is written to as it is. Under sudo a new file belongs
 * to who typed it (owner.h).
 */
#ifndef MEMATTACH_OUTPUT_FILE_H
#define MEMATTACH_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "err.h"

struct output_file {
	FILE *stream;
	const char *path; /* as the user gave it; "-": standard output */
	char *target;     /* where it is to be, links resolved; NULL: the stream writes there directly */
	char *beside;     /* what it is called until then, if it has a name */
	bool named;
};

/* path must outlive the file. -errno with a text; nothing is left then. */
int output_file_open(struct output_file *file, const char *path, struct err *e) WARN_UNUSED;
/* Ends the writing and gives the file its name. Nothing is left of one that could not be written wholly. */
int output_file_finish(struct output_file *file, struct err *e) WARN_UNUSED;
/* Leaves nothing of it, unless it was finished. */
void output_file_done(struct output_file *file);
/* Whether it would replace or overwrite this file. */
bool output_file_is(const struct output_file *file, const char *path);

#endif
