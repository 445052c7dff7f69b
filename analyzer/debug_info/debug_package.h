/* SPDX-License-Identifier: MIT */
/* Which package of Debian has the debug symbols of a file, by dpkg's lists of the files of each package. */
#pragma once

#include <stddef.h>

#define DEBUG_PACKAGE_LISTS "/var/lib/dpkg/info"
#define DEBUG_PACKAGE_NAME 128u

struct debug_package {
	const char *path;              /* of the file */
	char name[DEBUG_PACKAGE_NAME]; /* "mariadb-server-core-dbgsym"; "": the file is of no package here */
};

/* Finds the names of all, in one pass over the lists. lists: the directory with them. */
void debug_packages_find(const char *lists, struct debug_package *list, size_t count);
