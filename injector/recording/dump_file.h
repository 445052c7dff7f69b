/* SPDX-License-Identifier: MIT */
/*
 * The dump on disk: copies of the memory that the payload writes to (dump_writer.h), one after the other under the same
 * name.
 *
 * Each copy is written into a file without a name and then put in the place of the one before, so a reader finds a
 * whole one at any time, and one that is cut short leaves nothing. A child process does that: a file system that is
 * full, slow or gone holds up the child, not memattach, which has a lease to renew. A copy that has begun also comes to
 * its end if memattach is killed meanwhile.
 *
 * Copies come every two seconds, more seldom when they are large: at most a fiftieth of a processor's time and 10 MB/s
 * go into them. A recording that has not changed is copied twice a minute.
 *
 * Under sudo the file belongs to who typed it (owner.h).
 *
 * The name is taken once, by a file that did not exist. From then on memattach replaces or removes only the file that
 * it wrote last: what somebody else has put there stays, and the copy gets a name with a number.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "recording/dump_copy.h"
#include "base/err.h"
#include "recording/file_identity.h"
#include "files/new_file.h"

struct dump_file_result;

struct dump_file {
	char path[4096];
	int directory;          /* O_PATH, -1: not created */
	struct new_file coming; /* the copy that is being written */
	pid_t child;            /* that writes a copy, 0: none */
	uint64_t due_ns;        /* when the next copy is due */
	uint64_t interval_ns;   /* until then, from the last one on */
	uint64_t unchanged_ns;  /* the same while nothing is recorded */
	time_t begun_at;
	uint64_t begun_ns;               /* the same, CLOCK_MONOTONIC */
	time_t copied_at;                /* of the copy in the file */
	bool failing;                    /* the last copy could not be written: for whoever says it */
	uint64_t state, copied_state;    /* of the recording, as dump_file_begin saw it and as it is in the file */
	struct dump_file_result *result; /* shared with the child: which file is under the name, and what went wrong */
};

/* Takes the name, mode 0600. -EEXIST and others. dump_file_close afterwards. */
int dump_file_create(struct dump_file *f, const char *path, struct err *e) WARN_UNUSED;
/* Ends a copy that is under way, and closes; the file stays. */
void dump_file_close(struct dump_file *f);
/* The same, and removes the file if it is still ours: for an attach that did not come about. */
void dump_file_discard(struct dump_file *f);

/*
 * For a session that lasts. dump_file_tick begins a copy when one is due and looks for the end of one that is under
 * way: 1 one has come to its end, 0, or -errno of one that failed; it will be tried again. dump_file_abort ends one
 * that is under way: what it copies is about to be reordered.
 */
int dump_file_tick(struct dump_file *f, const struct dump_writer *w, struct err *e) WARN_UNUSED;
void dump_file_abort(struct dump_file *f);

/* Of who waits for work that may take long: asked ten times a second with the part that is done, from 0 to 1. False: it
 * is given up, -EINTR. */
struct patience {
	bool (*goes_on)(void *context, double done);
	void *context;
};

/* Writes the last copy, or the only one. Given up, the file is the copy before. */
int dump_file_write(struct dump_file *f, const struct dump_source *source, const struct patience *patience,
                    struct err *e) WARN_UNUSED;

/* Of the file that memattach wrote last. */
struct file_identity dump_file_identity(const struct dump_file *f);
/* In a child, because a file system may stand still: the file that memattach wrote last, if its name still leads there.
 * A descriptor or -errno. */
int dump_file_reopen(const struct dump_file *f, int flags) WARN_UNUSED;
/* Runs change in a child, waited for as dump_file_write does. */
int dump_file_change(struct dump_file *f, int (*change)(const struct dump_file *f, const void *what, struct err *e),
                     const void *what, const struct patience *patience, struct err *e) WARN_UNUSED;
