/* SPDX-License-Identifier: MIT */
/* Where a dump finds room when its disk has none. */
#ifndef MEMATTACH_OTHER_FOLDER_H
#define MEMATTACH_OTHER_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The first of $TMPDIR, /var/tmp and /tmp that is on another file system than directory (a descriptor; -1: on any), may
 * be written to, and has room for so many bytes and as many again for other programs. NULL: none.
 */
const char *other_folder(int directory, uint64_t bytes);

/* Is this an error of a disk without room? */
bool other_folder_helps(int code);

#endif
