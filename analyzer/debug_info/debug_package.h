/* SPDX-License-Identifier: MIT */
/* Which package of Debian has the debug symbols of a file, by dpkg's lists of the files of each package. */
#ifndef MEMATTACH_DEBUG_PACKAGE_H
#define MEMATTACH_DEBUG_PACKAGE_H

#include <stdbool.h>
#include <stddef.h>

#define DEBUG_PACKAGE_LISTS "/var/lib/dpkg/info"
#define DEBUG_PACKAGE_NAME 128u

/* "mariadb-server-core-dbgsym"; false: the file is of no package here. lists: the directory with them. */
bool debug_package_find(const char *lists, const char *path, char name[DEBUG_PACKAGE_NAME]);

#endif
