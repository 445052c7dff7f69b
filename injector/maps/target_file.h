/* SPDX-License-Identifier: MIT */
/*
 * Opening the file that a process has mapped, and nothing else. Its names are the target's choice: they may stand for a
 * device, a FIFO, or a file that only memattach may read.
 *
 * So a name is opened as common/files/regular_file.h says. What a name led to is taken for the mapped file if the
 * kernel says so: memattach maps it too, without touching it, and compares device and inode as /proc/PID/maps shows
 * both (stat shows other ones on overlay and btrfs).
 */
#pragma once

#include <sys/types.h>

#include "maps/maps.h"

#define TARGET_FILE_LINK 96u

/* The link that leads to the inode of a mapping, whatever became of its name; to follow it takes CAP_CHECKPOINT_RESTORE
 * or CAP_SYS_ADMIN, to read it the right to trace the process. */
void target_file_link(pid_t pid, const struct mapping *map, char link[TARGET_FILE_LINK]);
/*
 * The file of a mapping of process pid, for reading: by /proc/PID/map_files, which leads to the mapped inode whatever
 * became of its name, and where that is not permitted by the name in the target's root directory, which is not left
 * (Linux 5.6). -1: there is no such file, or not this way.
 */
int target_file_open(pid_t pid, const struct mapping *map, const char *name);
