/* SPDX-License-Identifier: MIT */
#include "dumps/machine.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "files/regular_file.h"
#include "dumps/newest_dump.h"

#define ROSTER "memattach.system."
#define FIRST_LINE "memattach-system\t1\n"
#define LINE 1024
#define UNSEEN_MAX 4096u
#define LINES_MAX (UNSEEN_MAX + 16u) /* of one roster: it may be a hole of any length */

static int add_path(struct machine *m, const char *directory, const char *name)
{
	char *path;

	if (!grow_list(m->paths, m->path_count) || asprintf(&path, "%s/%s", directory, name) < 0)
		return -ENOMEM;
	m->paths[m->path_count++] = path;
	return 0;
}

/* "unseen COUNT PID NAME WHY", with tabs. */
static int add_unseen(struct machine *m, char *line)
{
	char *fields[5] = { 0 }, *rest = line;

	line[strcspn(line, "\n")] = '\0';
	for (unsigned i = 0; i < 5; i++)
		fields[i] = strsep(&rest, "\t");
	if (!fields[4] || strcmp(fields[0], "unseen") != 0 || m->unseen_count == UNSEEN_MAX)
		return 0;
	if (!grow_list(m->unseen, m->unseen_count))
		return -ENOMEM;
	struct machine_unseen *u = &m->unseen[m->unseen_count];
	*u = (struct machine_unseen){ .count = (unsigned)strtoul(fields[1], NULL, 10),
		                      .name = strdup(fields[3]),
		                      .why = strdup(fields[4]) };
	m->unseen_count++;
	return u->name && u->why ? 0 : -ENOMEM;
}

static int read_roster(struct machine *m, int directory, const char *name)
{
	char line[LINE];
	int r = 0, fd = regular_file_open_at(directory, name, 0);
	AUTO_FCLOSE FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;

	if (!f && fd >= 0)
		close(fd);
	if (!f || !fgets(line, sizeof line, f) || strcmp(line, FIRST_LINE) != 0)
		return 0;
	for (unsigned n = 0; !r && n < LINES_MAX && fgets(line, sizeof line, f); n++)
		r = add_unseen(m, line);
	return r;
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int machine_read(struct machine *m, const char *directory, struct err *e)
{
	DIR *d = opendir(directory);
	int r = 0;

	*m = (struct machine){ 0 };
	if (!d)
		return err_sys(e, "cannot read the directory");
	for (struct dirent *entry; !r && (entry = readdir(d));) {
		if (newest_dump_is(dirfd(d), entry->d_name))
			r = add_path(m, directory, entry->d_name);
		else if (!strncmp(entry->d_name, ROSTER, strlen(ROSTER)))
			r = read_roster(m, dirfd(d), entry->d_name);
	}
	closedir(d);
	if (!r && !m->path_count)
		r = err_set(e, ENOENT, "no dump is in this directory");
	else if (r)
		err_set(e, -r, "out of memory");
	else
		qsort(m->paths, m->path_count, sizeof *m->paths, compare_paths);
	if (r)
		machine_free(m);
	return r;
}

void machine_free(struct machine *m)
{
	for (size_t i = 0; i < m->path_count; i++)
		free(m->paths[i]);
	for (size_t i = 0; i < m->unseen_count; i++) {
		free(m->unseen[i].name);
		free(m->unseen[i].why);
	}
	free(m->paths);
	free(m->unseen);
	*m = (struct machine){ 0 };
}
