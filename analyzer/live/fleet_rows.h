/* SPDX-License-Identifier: MIT */
/*
 * The processes of a directory of dumps, as they are at this moment (memattach --system writes there).
 *
 * Each look reads the headers of the dumps that were written since: they have what the kernel says of the private
 * memory, which is the growth that rows are sorted by. What is live is in the whole dump. That is read for the rows
 * that are shown first, while a look has taken less than FLEET_READ_NS of CPU time: with whatever many processes a look
 * costs about the same, and those further down have figures that are some looks old, or none yet.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/group_names.h"
#include "dump/dump_reader.h"
#include "report/report.h"

#define FLEET_READ_NS 20000000ull
#define FLEET_MAX 4096u
#define FLEET_WINDOW_NS 60000000000ull /* growth is of the last half of it to all of it */

enum fleet_sort { FLEET_SORT_GROWN, FLEET_SORT_MINUTE, FLEET_SORT_LIVE, FLEET_SORT_NAME, FLEET_SORT_COUNT };

struct fleet_process {
	char *file;                          /* in the directory */
	char command[64], group[GROUP_NAME]; /* group: its container, else its unit; "" */
	int32_t pid;
	enum dump_end end;
	uint64_t private_bytes;    /* 0: not known */
	double grown;              /* private memory since the attach, bytes */
	double minute;             /* the same of the last minute, per minute; NAN: not known yet */
	bool live_known, live_old; /* as of this dump; of an earlier state of it */
	struct estimate live;
	enum trust_value trust;
	uint64_t samples;
	/* private: */
	bool present;
	ino_t inode;
	struct timespec written;
	struct {
		uint64_t ns, bytes;
	} bases[2];
};

struct fleet {
	struct fleet_process *list;
	size_t count;
	size_t ended;                /* of these */
	size_t left_out;             /* beyond FLEET_MAX, or of another user */
	double private_bytes, grown; /* of all */
};

const char *fleet_sort_name(enum fleet_sort sort);
/* -errno with a text: the directory cannot be read; what was seen stays. filter: "" or a text in the name. options: of
 * the reports. first: the row that is shown first. fleet_done in any case. */
int fleet_look(struct fleet *fleet, const char *directory, const struct report_options *options, enum fleet_sort sort,
               size_t first, struct err *e) WARN_UNUSED;
void fleet_sort(struct fleet *fleet, enum fleet_sort sort);
/* Whether the text is in its command or its group, in capitals or not. */
bool fleet_fits(const struct fleet_process *process, const char *text);
void fleet_done(struct fleet *fleet);
