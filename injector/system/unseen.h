/* SPDX-License-Identifier: MIT */
/*
 * Who is not profiled, and why: counted by the name of the program and the reason, so that it stays short whatever
 * happens on the machine. Numbers of processes and threads in a reason do not tell two reasons apart.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#define UNSEEN_WHY 256u
#define UNSEEN_ROWS 512u /* those that find no room are counted in more */

struct unseen_row {
	char name[64]; /* of the program */
	char why[UNSEEN_WHY];
	pid_t example; /* a process */
	unsigned count;
};

struct unseen {
	struct unseen_row *list; /* malloc'ed */
	size_t count;
	unsigned more;
};

/* True: it is the first with this reason, whatever its name. Without room for more rows none is. */
bool unseen_add(struct unseen *u, const char *name, pid_t pid, const char *why);
/* Adds all rows of another. */
void unseen_merge(struct unseen *u, const struct unseen *other);
unsigned unseen_total(const struct unseen *u);
/* The most frequent first. */
void unseen_sort(struct unseen *u);
void unseen_free(struct unseen *u);
