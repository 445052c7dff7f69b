/* SPDX-License-Identifier: MIT */
/*
 * A file that takes its name when it is whole (new_file.h); whatever ends the program before leaves what was there. A
 * link that may be followed is, and stays (file_place.h). What is there and is no regular file (a FIFO, a device,
 * /dev/stdout) is written to as it is; for root a FIFO of another user is refused. A file of another user is replaced,
 * but for directories in which files are left to their owners, as /tmp. Under sudo a new file belongs to who typed it.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/err.h"
#include "files/file_place.h"
#include "files/new_file.h"

struct output_file {
	FILE *stream;
	const char *path; /* as the user gave it; "-": standard output */
	struct file_place place;
	bool replaces; /* file is to take the name of the place; else the stream writes there directly */
	struct new_file file;
};

/* Of a command: opening a FIFO waits until somebody reads it, and a new file has the mode that umask leaves it. Of a
 * session: that nobody reads the FIFO is an error, and a new file is for its owner alone, as the dump is. */
enum output_use { OUTPUT_OF_COMMAND, OUTPUT_OF_SESSION };

/* path must outlive the file. -errno with a text; nothing is left then. */
int output_file_open(struct output_file *file, const char *path, enum output_use use, struct err *e) WARN_UNUSED;
/* Ends the writing and gives the file its name. Nothing is left of one that could not be written wholly. */
int output_file_finish(struct output_file *file, struct err *e) WARN_UNUSED;
/* Leaves nothing of it, unless it was finished. */
void output_file_done(struct output_file *file);
/* Whether it would replace or overwrite this file. */
bool output_file_is(const struct output_file *file, const char *path);
