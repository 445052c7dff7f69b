/* SPDX-License-Identifier: MIT */
#include "process/proc_stat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/whole_io.h"

int proc_stat_field(const char *text, unsigned field, char *value, size_t size)
{
	/* The command (field 2) may hold anything, also ") ": fields are counted from its last closing parenthesis. */
	const char *at = strrchr(text, ')');

	for (unsigned i = 2; at && i < field; i++) {
		at = strchr(at, ' ');
		if (at)
			at++;
	}
	if (!at)
		return -EINVAL;
	snprintf(value, size, "%.*s", (int)strcspn(at, " \n"), at);
	return 0;
}

bool proc_stat_has_gone(int rc)
{
	return rc == -ENOENT || rc == -ESRCH;
}

int proc_stat_unread(int rc, pid_t pid, struct err *e)
{
	return proc_stat_has_gone(rc) ? err_set(e, ESRCH, "there is no process %d", pid)
	                              : err_set(e, -rc, "process %d cannot be looked at: %s", pid, strerror(-rc));
}

/* A file that was read has the field, or was read as the process ended. */
static int read_field(const char *path, unsigned field, char *value, size_t size)
{
	char text[1024];

	int rc = whole_io_text(path, text, sizeof text);
	if (rc == 0)
		rc = proc_stat_field(text, field, value, size) < 0 ? -ESRCH : 0;
	return proc_stat_has_gone(rc) ? -ESRCH : rc;
}

int proc_stat_number(pid_t pid, unsigned field, uint64_t *value, struct err *e)
{
	char path[40], number[32];

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	int rc = read_field(path, field, number, sizeof number);
	if (rc < 0)
		return proc_stat_unread(rc, pid, e);
	*value = strtoull(number, NULL, 10);
	return 0;
}

uint64_t proc_stat_cpu_ns(pid_t pid)
{
	char path[40], text[1024], number[32];
	uint64_t ticks = 0;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	if (whole_io_text(path, text, sizeof text) < 0)
		return 0;
	for (unsigned field = 14; field <= 17; field++)
		if (proc_stat_field(text, field, number, sizeof number) == 0)
			ticks += strtoull(number, NULL, 10);
	return ticks * (1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK));
}

int proc_stat_text(pid_t pid, pid_t tid, unsigned field, char *value, size_t size)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
	return read_field(path, field, value, size);
}
