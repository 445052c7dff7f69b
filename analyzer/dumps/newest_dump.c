/* SPDX-License-Identifier: MIT */
#include "dumps/newest_dump.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "dump_format.h"
#include "files/regular_file.h"
#include "files/whole_io.h"

#define ENDING ".dump"

static bool has_ending(const char *name)
{
	size_t n = strlen(name);

	return n > strlen(ENDING) && !strcmp(name + n - strlen(ENDING), ENDING);
}

/* When it was written. False: it is no dump of ours. */
static bool look(int directory, const char *name, struct timespec *written)
{
	AUTO_CLOSE int fd = regular_file_open_at(directory, name, 0);
	char magic[sizeof DUMP_MAGIC - 1];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !whole_io_pread(fd, magic, sizeof magic, 0) ||
	    memcmp(magic, DUMP_MAGIC, sizeof magic) != 0)
		return false;
	*written = st.st_mtim;
	return true;
}

/* Of two that were written at the same time the name decides, so that the answer is the same each time. */
static bool is_newer(const struct timespec *a, const char *a_name, const struct timespec *b, const char *b_name)
{
	if (a->tv_sec != b->tv_sec)
		return a->tv_sec > b->tv_sec;
	if (a->tv_nsec != b->tv_nsec)
		return a->tv_nsec > b->tv_nsec;
	return strcmp(a_name, b_name) > 0;
}

static int search(DIR *here, char **newest, size_t *count)
{
	struct timespec written, latest = { 0 };

	for (struct dirent *entry; (entry = readdir(here));) {
		if (!has_ending(entry->d_name) || !look(dirfd(here), entry->d_name, &written))
			continue;
		(*count)++;
		if (*newest && !is_newer(&written, entry->d_name, &latest, *newest))
			continue;
		free(*newest);
		*newest = strdup(entry->d_name);
		if (!*newest)
			return -ENOMEM;
		latest = written;
	}
	return 0;
}

bool newest_dump_is(int directory, const char *name)
{
	struct timespec written;

	return has_ending(name) && look(directory, name, &written);
}

int newest_dump_find(char **path, size_t *older, struct err *e)
{
	AUTO_FREE char *newest = NULL;
	size_t count = 0;
	DIR *here = opendir(".");

	if (!here)
		return err_sys(e, "cannot look for dumps in the current directory");
	int rc = search(here, &newest, &count);
	closedir(here);
	if (rc < 0)
		return err_set(e, -rc, "out of memory");
	if (!newest)
		return err_set(e, ENOENT, "which dump? None is in the current directory (*" ENDING ")");
	*path = cleanup_steal_pointer(&newest);
	*older = count - 1;
	return 0;
}
