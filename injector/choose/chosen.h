/* SPDX-License-Identifier: MIT */
/*
 * Processes chosen by what they are called, or by the cgroup that they are in, from what /proc shows now. Each is kept
 * with its start time, by which target_open's caller sees that the number means the same process when it is attached
 * to. Left out are this process, kernel threads, and what has ended; of command lines also those that led here, such as
 * sudo's and a shell's, which hold what is looked for because memattach's does.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/err.h"

struct chosen {
	pid_t pid;
	uint64_t start_ticks; /* field 22 of /proc/PID/stat */
	char name[64];        /* of its program, or its comm */
	uint64_t private_bytes;
};

struct chosen_list {
	struct chosen *list; /* by PID */
	size_t count;
};

enum chosen_by {
	CHOSEN_BY_NAME,   /* comm, or the name of the program's file; if nobody has it the command line: see below */
	CHOSEN_BY_CGROUP, /* in it or below; as /proc/PID/cgroup has it, or below /sys/fs/cgroup */
	CHOSEN_BY_UNIT,   /* in a unit of systemd, of the system or of this user; ".service" may be left out */
};

/*
 * chosen_free afterwards. -ESRCH: there is none; the text says of what. A name that no program has is looked for as an
 * extended regular expression in the command lines, the words of which have a blank between them, as pgrep -f does.
 */
int chosen_find(struct chosen_list *chosen, enum chosen_by by, const char *what, struct err *e) WARN_UNUSED;
/* One process. -ESRCH: it has ended. */
int chosen_look(struct chosen *chosen, pid_t pid, struct err *e) WARN_UNUSED;
/* Is this process meant? Unlike chosen_find, a name is that of comm or of the program's file only. */
bool chosen_fits(pid_t pid, enum chosen_by by, const char *what);
/* The path of its cgroup, of several hierarchies the longest; "" where it cannot be read. */
void chosen_cgroup(pid_t pid, char *path, size_t size);
/* How long ago a process began. */
uint64_t chosen_age_ns(uint64_t start_ticks);
void chosen_free(struct chosen_list *chosen);
/* One line each with the command line as it is now, printable, on a terminal cut to its width; at most so many. */
void chosen_print(const struct chosen_list *chosen, size_t most, FILE *out);

/* Does a line of /proc/PID/cgroup, without its end, put a process into the cgroup, or the unit of the system or of the
 * manager of user uid? For chosen_find, and tests. */
bool chosen_line_matches(const char *line, enum chosen_by by, const char *what, uid_t uid);
