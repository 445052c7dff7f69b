/* SPDX-License-Identifier: MIT */
#include "search/kernel_pointers.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/grow.h"

static bool is_epoll(const char *directory, const char *name)
{
	char path[320], target[64];

	snprintf(path, sizeof path, "%s/%.200s", directory, name);
	const ssize_t n = readlink(path, target, sizeof target - 1);
	target[n > 0 ? n : 0] = '\0';
	return !strcmp(target, "anon_inode:[eventpoll]");
}

int kernel_pointers_find(struct kernel_pointers *k, pid_t pid, struct err *e)
{
	char directory[64];
	int rc = 0;

	*k = (struct kernel_pointers){ .pid = pid };
	snprintf(directory, sizeof directory, "/proc/%d/fd", pid);
	DIR *dir = opendir(directory);
	if (!dir)
		return err_sys(e, "cannot open %s", directory);
	for (const struct dirent *entry; rc == 0 && (entry = readdir(dir));) {
		if (!is_epoll(directory, entry->d_name))
			continue;
		if (!grow_list(k->epolls, k->epoll_count))
			rc = err_set(e, ENOMEM, "no memory for its descriptors");
		else
			k->epolls[k->epoll_count++] = atoi(entry->d_name);
	}
	closedir(dir);
	return rc;
}

/* Of each line that has a mark, the hexadecimal number that follows it. */
static int read_lines(const char *path, const char *begin, const char *mark, uint64_t **words, size_t *count,
                      struct err *e)
{
	char line[512];
	AUTO_FCLOSE FILE *file = fopen(path, "re");

	while (file && fgets(line, sizeof line, file)) {
		const char *at = strncmp(line, begin, strlen(begin)) ? NULL : strstr(line, mark);
		if (!at)
			continue;
		if (!grow_list(*words, *count))
			return err_set(e, ENOMEM, "no memory for what the kernel has of it");
		(*words)[(*count)++] = strtoull(at + strlen(mark), NULL, 16);
	}
	return 0;
}

int kernel_pointers_read(const struct kernel_pointers *k, uint64_t **words, size_t *count, struct err *e)
{
	char path[64];
	int rc = 0;

	for (size_t i = 0; i < k->epoll_count && rc == 0; i++) {
		snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", k->pid, k->epolls[i]);
		rc = read_lines(path, "tfd:", "data:", words, count, e);
	}
	snprintf(path, sizeof path, "/proc/%d/timers", k->pid);
	return rc == 0 ? read_lines(path, "signal:", "/", words, count, e) : rc;
}

void kernel_pointers_free(struct kernel_pointers *k)
{
	free(k->epolls);
	*k = (struct kernel_pointers){ 0 };
}
