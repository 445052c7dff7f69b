/* SPDX-License-Identifier: MIT */
#include "debug_info/debug_package.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static const char ending[] = ".list";

/* Whether a line of the list is the path: as it is, or without the /usr into which /bin and /lib were merged. */
static bool has_line(FILE *list, const char *path)
{
	AUTO_FREE char *line = NULL;
	const char *old = strncmp(path, "/usr/", 5) ? path : path + 4;
	size_t room = 0;
	ssize_t n;

	while ((n = getline(&line, &room, list)) > 0) {
		line[n - 1] = line[n - 1] == '\n' ? 0 : line[n - 1];
		if (!strcmp(line, path) || !strcmp(line, old))
			return true;
	}
	return false;
}

static bool is_of(const char *lists, const char *name, const char *path)
{
	char file[4096];

	if ((size_t)snprintf(file, sizeof file, "%s/%s", lists, name) >= sizeof file)
		return false;
	FILE *list = fopen(file, "re");
	bool found = list && has_line(list, path);
	if (list)
		fclose(list);
	return found;
}

bool debug_package_find(const char *lists, const char *path, char name[DEBUG_PACKAGE_NAME])
{
	DIR *directory = opendir(lists);
	const struct dirent *entry;
	bool found = false;

	while (directory && !found && (entry = readdir(directory))) {
		size_t n = strlen(entry->d_name), m = sizeof ending - 1;
		if (n <= m || strcmp(entry->d_name + n - m, ending) != 0 || !is_of(lists, entry->d_name, path))
			continue;
		n = strcspn(entry->d_name, ":"); /* libc6:amd64.list */
		n = n < strlen(entry->d_name) - m ? n : strlen(entry->d_name) - m;
		found = n + sizeof "-dbgsym" <= DEBUG_PACKAGE_NAME;
		if (found)
			snprintf(name, DEBUG_PACKAGE_NAME, "%.*s-dbgsym", (int)n, entry->d_name);
	}
	if (directory)
		closedir(directory);
	return found;
}
