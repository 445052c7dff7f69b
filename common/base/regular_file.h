/* SPDX-License-Identifier: MIT */
/*
 * Opens files whose names come from strangers. To open a device may rewind a tape or start a watchdog, and to open a
 * FIFO waits for a writer; so the place is looked at through a descriptor that opens nothing (O_PATH), and what it is
 * decides, not what is at the name later.
 */
#ifndef MEMATTACH_REGULAR_FILE_H
#define MEMATTACH_REGULAR_FILE_H

#include <sys/types.h>

#include "err.h"

/*
 * Opens a regular file for reading; flags are O_NOFOLLOW or 0. A descriptor, -EISDIR, -ESPIPE for what else is no
 * regular file, or -errno. Calls only what may be called in a signal handler.
 */
int regular_open_at(int directory, const char *path, int flags) WARN_UNUSED;
/* The same, and says why not. */
int regular_open(const char *path, struct err *e) WARN_UNUSED;

#endif
