/* SPDX-License-Identifier: MIT */
/*
 * Opens files whose names come from strangers. To open a device may rewind a tape or start a watchdog, and to open a
 * FIFO waits for a writer; so the place is looked at through a descriptor that opens nothing (O_PATH), and what it is
 * decides, not what is at the name later.
 *
 * Files in which the kernel shows itself (procfs, sysfs and their kin) call themselves regular, but what they give
 * depends on who has opened them, and to read some is an act. They are refused like devices.
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"

/*
 * Opens a regular file for reading; flags are O_NOFOLLOW or 0. A descriptor, -EISDIR, -ESPIPE for what else is no
 * regular file, or -errno. Calls only what may be called in a signal handler.
 */
int regular_file_open_at(int directory, const char *path, int flags) WARN_UNUSED;
/* The same for a place that was opened with O_PATH; it stays open. */
int regular_file_reopen(int place) WARN_UNUSED;
/* As regular_file_open_at from here, and says why not. */
int regular_file_open(const char *path, struct err *e) WARN_UNUSED;
