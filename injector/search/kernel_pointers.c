/* SPDX-License-Identifier: MIT */
#include "search/kernel_pointers.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "process/live_thread.h"
#include "process/task.h"

#define FEW 1000u /* descriptors that may be asked for while the process stands still */

/* Of which kind a descriptor is, by what its link says; empty: it is gone. */
static void read_kind(const char *directory, const char *name, char *kind, size_t size)
{
	char path[320];

	snprintf(path, sizeof path, "%s/%.200s", directory, name);
	const ssize_t n = readlink(path, kind, size - 1);
	kind[n > 0 ? n : 0] = '\0';
}

struct search {
	struct kernel_pointers *found;
	size_t most; /* descriptors to look at */
};

static int look_at(struct search *s, const char *directory, const char *name, struct err *e)
{
	struct kernel_pointers *k = s->found;
	char kind[64];

	if (k->looked_at++ == s->most)
		return err_set(e, E2BIG, "it has more than %zu descriptors", s->most);
	read_kind(directory, name, kind, sizeof kind);
	k->io_uring |= !strcmp(kind, "anon_inode:[io_uring]");
	if (strcmp(kind, "anon_inode:[eventpoll]") != 0)
		return 0;
	if (!grow_list(k->epolls, k->epoll_count))
		return err_set(e, ENOMEM, "no memory for its descriptors");
	k->epolls[k->epoll_count++] = atoi(name);
	return 0;
}

/* Descriptors of a thread that has ended are none. */
static int find(const char *thread, void *context, struct err *e)
{
	struct search *s = context;
	struct kernel_pointers *k = s->found;
	char directory[80];
	pid_t tid = 0;
	int rc = 0;

	snprintf(directory, sizeof directory, "%s/fd", thread);
	DIR *dir = opendir(directory);
	if (!dir)
		return errno == ENOENT ? err_set(e, ESRCH, "a thread has ended")
		                       : err_sys(e, "cannot open %s", directory);
	k->epoll_count = k->looked_at = 0;
	k->io_uring = false;
	for (const struct dirent *entry; rc == 0 && (entry = readdir(dir));)
		if (entry->d_name[0] != '.')
			rc = look_at(s, directory, entry->d_name, e);
	closedir(dir);
	if (rc == 0 && (sscanf(thread, "/proc/%*d/task/%d", &tid) != 1 || !task_has_memory(k->pid, tid)))
		return err_set(e, ESRCH, "a thread has ended");
	return rc;
}

int kernel_pointers_find(struct kernel_pointers *k, const struct target *t, struct err *e)
{
	*k = (struct kernel_pointers){ .pid = t->pid };
	return live_thread_look(t, find, &(struct search){ k, SIZE_MAX }, e);
}

int kernel_pointers_find_again(struct kernel_pointers *k, const struct target *t, struct err *e)
{
	struct kernel_pointers now = { .pid = t->pid };
	const int rc = k->looked_at > FEW ? err_set(e, E2BIG, "it has more than %u descriptors", FEW)
	                                  : live_thread_look(t, find, &(struct search){ &now, 2 * FEW }, e);

	if (rc < 0) {
		kernel_pointers_free(&now);
		return rc;
	}
	kernel_pointers_free(k);
	*k = now;
	return 0;
}

bool kernel_pointers_has_more(const struct kernel_pointers *k, const struct kernel_pointers *than)
{
	size_t n = 0;

	for (size_t i = 0; i < k->epoll_count; i++) {
		while (n < than->epoll_count && than->epolls[n] < k->epolls[i])
			n++;
		if (n == than->epoll_count || than->epolls[n] != k->epolls[i])
			return true;
	}
	return false;
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
	const pid_t tid = task_alive(k->pid);
	char path[96];
	int rc = 0;

	for (size_t i = 0; i < k->epoll_count && rc == 0; i++) {
		snprintf(path, sizeof path, "/proc/%d/task/%d/fdinfo/%d", k->pid, tid, k->epolls[i]);
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
