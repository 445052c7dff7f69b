/* SPDX-License-Identifier: MIT */
/*
 * A line on a terminal that says how far a long run is. It appears after a delay, only where a person may be waiting:
 * the descriptor is a terminal that can erase a line, and this process group has it. It is erased by progress_clear and
 * progress_stop; a signal that ends the program leaves it there.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PROGRESS_DELAY_NS 1000000000ull

struct progress {
	int fd;          /* -1: nothing is shown any more */
	bool shown;      /* the line is there now */
	uint64_t due_ns; /* when the line is drawn next */
	char text[64];   /* what it shows */
};

void progress_start(struct progress *progress, int fd, uint64_t delay_ns);
/* What is being done, a literal, and how much of it; total 0: not known. progress may be NULL. Cheap enough to call
 * every microsecond. */
void progress_at(struct progress *progress, const char *what, uint64_t done, uint64_t total);
/* Erases the line, to let something else be written there; it may come again. */
void progress_clear(struct progress *progress);
/* Erases the line; nothing is shown from now on. */
void progress_stop(struct progress *progress);
