/* SPDX-License-Identifier: MIT */
/*
 * What reads files of unknown origin lives in a child process that can do nothing else. Its memory and its time are
 * limited by the kernel, so whatever the libraries for ELF and DWARF make of such a file, or the file of them, costs
 * the answers and no more.
 *
 * In the jail
 * - a filter (seccomp) lets through the system calls that reading takes: no process or thread can be started, no code
 *   loaded, no socket made, no file written;
 * - each open is turned into one of a regular file, read only (common/files/regular_file.h): of all in the process,
 * also of libraries, to which everything else does not exist. So no FIFO is waited for, and no device is touched;
 * - of memory there are JAIL_MEMORY_BYTES, and JAIL_FILE_FACTOR times the size of each file that is opened;
 * - of CPU time there are JAIL_CPU_SECONDS, and a second for each JAIL_CPU_BYTES of each file. Who answers questions
 *   may add more.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define JAIL_MEMORY_BYTES (128ull << 20)
/* A file is opened two to four times; libdw inflates compressed debug information to four times its size. */
#define JAIL_FILE_FACTOR 8u
#define JAIL_CPU_SECONDS 10u
#define JAIL_CPU_BYTES (2ull << 20)

/* Descriptors for reading that the jail gets beside its own, all above JAIL_DESCRIPTOR. */
struct jail_files {
	const int *list;
	size_t count;
};
#define JAIL_FILES_MAX 512u

/*
 * For the only thread of a new process, which keeps the descriptor keep as number 3, those of files, and none else, and
 * must end by _exit. Memory that it has so far is not counted. After a failure it is to end.
 */
int jail_enter(int keep, const struct jail_files *files, struct err *e) WARN_UNUSED;
#define JAIL_DESCRIPTOR 3

/* A descriptor of a file that was opened outside, to be closed; more memory and time, as for one that is opened here.
 * -1 with errno. */
int jail_open(int file);

/* More CPU time, for more questions. */
void jail_add_time(uint64_t milliseconds);
