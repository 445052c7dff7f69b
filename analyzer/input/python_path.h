/* SPDX-License-Identifier: MIT */
/*
 * What Python files are called: by the entry of sys.path that they lie in, as an import statement finds them.
 *
 * Entries and files are compared as text, "//", "/./" and "/x/.." taken out of both: an import puts an entry's text
 * before the module's, so no symbolic link is in the way. Of several entries the longest counts. A directory of
 * packages further down (python_files.h) counts more than any entry: what is below it was not imported through the
 * entry, since neither "site-packages" nor "python3.11" can be a part of a module's name.
 *
 * All files lie in the entry "/", so it says nothing; it may be the "" of a daemon that works there. Relative entries
 * are for files with a relative name; a dump has the absolute form of each as well.
 */
#pragma once

#include <stdbool.h>

#include "dump/dump_code.h"
#include "dump/dump_reader.h"

/* sys.path of a dump. To begin with: zeros. */
struct python_path {
	char **list;
	uint32_t count;
	size_t bytes;
};

/* Of dumps that are hostile, the first DUMP_PATHS_MAX and DUMP_PATHS_BYTES_MAX. -ENOMEM. */
int python_path_read(struct python_path *path, struct dump *dump) WARN_UNUSED;
int python_path_add(struct python_path *path, const char *entry) WARN_UNUSED;
void python_path_done(struct python_path *path);

/* The part of a file below its entry or directory of packages; false: it is in none. */
bool python_path_below(const struct python_path *path, const char *file, char below[DUMP_CODE_FILE_TEXT]);
