/* SPDX-License-Identifier: MIT */
/*
 * Giving up rights, in a process that reads what somebody else has written.
 *
 * Such a process has descriptors that its user could not open: the dump, files of a directory that is closed to him, a
 * pipe in which root's report goes. Who may take them out of it (ptrace(2), pidfd_getfd(2), /proc/PID/fd) the kernel
 * decides by its user, its capabilities and whether it is dumpable, and each execve makes it dumpable again. Therefore:
 *
 *   - it executes its program while it is root, whom nobody can trace, and gives up its rights inside of that program,
 *     before it reads anything;
 *   - it becomes a user of its own, which no other process is: neither the user of the target nor nobody, whom many
 *     daemons are, so that no one but root can send it a signal, either. Only the right to open files is that of the
 *     user for whom it reads, by the file-system IDs of setfsuid(2);
 *   - it has capabilities, which are more than a tracer of that user has, until it cannot be dumped any more. The
 * change of the user does that, too, but where fs.suid_dumpable is 1.
 *
 * Who is not root has nobody else to become: then the process stays that user, without capabilities, and cannot be
 * opened by others of his either.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* ---- parts ---- */

uint64_t rights_capabilities(void); /* that are permitted */
int rights_set_capabilities(uint64_t bits);
/* What of the address space is data that only this process writes, as RLIMIT_DATA counts it. */
uint64_t rights_data_bytes(void);

/* ---- a program that reads for a user ---- */

struct rights {
	uid_t uid; /* for whom files are opened; 0: root's are to be named, and read as one who is nobody */
	gid_t gid;
	uint64_t data_bytes, file_bytes; /* that it may allocate, and write to a file */
	unsigned cpu_seconds;
};

#define RIGHTS_TEXT 100u
/* How memattach tells memanalyze. */
void rights_format(const struct rights *rights, char text[RIGHTS_TEXT]);
bool rights_parse(const char *text, struct rights *rights);

/* From now until rights_drop files are opened as by the user alone, root included: by his number and group, with no
 * other group and no capability. -EPERM: root cannot give up its groups or capabilities. */
int rights_lend(const struct rights *rights) WARN_UNUSED;
/*
 * Before anything is read: a user of its own (above), who gains no capability by execve, has no network, connects to
 * nothing, looks at no other process, executes nothing, and has no terminal (it leads a session of its own); a lower
 * priority, and limits. Ends with its parent. -EPERM: it would have rights, then nothing is to be read. Not for the
 * leader of a process group.
 */
int rights_drop(const struct rights *rights) WARN_UNUSED;
/*
 * The same for a program that draws on the terminal. It keeps that, may set its modes and ask for its size and no more
 * (not type: TIOCSTI), and writes to no file.
 */
int rights_drop_to_view(void) WARN_UNUSED;

/* ---- a process that only computes ---- */

/*
 * No descriptors but those of keep (close_all_but.h), a user of its own that nobody can open, no capabilities, no more
 * memory than data_bytes beyond what it has, cpu_seconds of time, and a filter that lets through what the allocator and
 * threads need, and reading and writing what is open. Best effort: what the kernel has not, and root may not, is passed
 * over. Ends with the parent.
 */
void rights_drop_to_compute(int *keep, size_t keep_count, uint64_t data_bytes, unsigned cpu_seconds);
