/* SPDX-License-Identifier: MIT */
#include "debug_info/debug_package.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static const char ending[] = ".list";

struct search {
	struct debug_package *list;
	size_t count, left; /* that have no name yet */
};

/* As it is, or without the /usr into which /bin and /lib were merged. */
static bool is_path(const char *line, const char *path)
{
	return !strcmp(line, path) || (!strncmp(path, "/usr/", 5) && !strcmp(line, path + 4));
}

/* The package of NAME.list, or of libc6:amd64.list. */
static void name_package(struct search *q, struct debug_package *p, const char *file)
{
	size_t n = strcspn(file, ":"), m = strlen(file) - (sizeof ending - 1);

	n = n < m ? n : m;
	if (n + sizeof "-dbgsym" > sizeof p->name)
		return;
	snprintf(p->name, sizeof p->name, "%.*s-dbgsym", (int)n, file);
	q->left--;
}

static void read_list(struct search *q, FILE *list, const char *file)
{
	AUTO_FREE char *line = NULL;
	size_t room = 0;
	ssize_t n;

	while (q->left && (n = getline(&line, &room, list)) > 0) {
		line[n - 1] = line[n - 1] == '\n' ? 0 : line[n - 1];
		for (size_t i = 0; i < q->count; i++)
			if (!q->list[i].name[0] && is_path(line, q->list[i].path))
				name_package(q, &q->list[i], file);
	}
}

void debug_packages_find(const char *lists, struct debug_package *list, size_t count)
{
	struct search q = { list, count, count };
	DIR *directory = opendir(lists);
	const struct dirent *entry;
	char path[4096];

	while (directory && q.left && (entry = readdir(directory))) {
		size_t n = strlen(entry->d_name), m = sizeof ending - 1;
		if (n <= m || strcmp(entry->d_name + n - m, ending) != 0 ||
		    (size_t)snprintf(path, sizeof path, "%s/%s", lists, entry->d_name) >= sizeof path)
			continue;
		AUTO_FCLOSE FILE *file = fopen(path, "re");
		if (file)
			read_list(&q, file, entry->d_name);
	}
	if (directory)
		closedir(directory);
}
