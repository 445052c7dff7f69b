/* SPDX-License-Identifier: MIT */
#include "process/memory_room.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/size.h"
#include "files/whole_io.h"

/* Files of one version of the memory controller (cgroup-v1/memory.rst and cgroup-v2.rst of the kernel's documentation).
 */
struct controller {
	const char *mount, *limit, *usage, *reclaimable;
};

static const struct controller version_1 = { "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
	                                     "\ntotal_inactive_file " };
static const struct controller version_2[] = {
	{ "/sys/fs/cgroup", "memory.max", "memory.current", "\ninactive_file " },
	{ "/sys/fs/cgroup/unified", "memory.max", "memory.current", "\ninactive_file " },
};

static bool read_number(const char *directory, const char *name, uint64_t *value)
{
	char path[800], text[64], *end;

	if ((size_t)snprintf(path, sizeof path, "%s/%s", directory, name) >= sizeof path ||
	    whole_text(path, text, sizeof text) < 0)
		return false;
	*value = strtoull(text, &end, 10);
	return end != text; /* "max": there is no limit */
}

/* A number of a file of lines "name number"; key is "\nname ". 0: not there. */
static uint64_t line_value(const char *path, const char *key)
{
	char text[16384] = "\n";

	if (whole_text(path, text + 1, sizeof text - 1) < 0)
		return 0;
	const char *at = strstr(text, key);
	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* What a group has left, with the page cache that can be reclaimed at no cost; UINT64_MAX: there is no limit. */
static uint64_t group_room(const struct controller *c, const char *directory)
{
	uint64_t limit, usage;
	char path[800];

	if (!read_number(directory, c->limit, &limit) || !read_number(directory, c->usage, &usage))
		return UINT64_MAX;
	snprintf(path, sizeof path, "%s/memory.stat", directory);
	uint64_t reclaimable = line_value(path, c->reclaimable);
	usage = usage > reclaimable ? usage - reclaimable : 0;
	return limit > usage ? limit - usage : 0;
}

/* The least of a group and of those that it is in. group begins with a slash. */
static uint64_t least_room(const struct controller *c, const char *group)
{
	char directory[700];
	uint64_t least = UINT64_MAX;

	if ((size_t)snprintf(directory, sizeof directory, "%s%s", c->mount, group) >= sizeof directory)
		return least;
	for (char *slash; strlen(directory) >= strlen(c->mount); *slash = '\0') {
		uint64_t room = group_room(c, directory);
		least = room < least ? room : least;
		slash = strrchr(directory, '/');
	}
	return least;
}

/* /proc/PID/cgroup has a line "0::/group" for version 2 and "number:controllers:/group" for each hierarchy of
 * version 1. */
static uint64_t cgroup_room(const char *file)
{
	char text[4096], *rest = text;
	uint64_t least = UINT64_MAX;

	if (whole_text(file, text, sizeof text) < 0)
		return least;
	for (char *line; (line = strsep(&rest, "\n"));) {
		const char *group = strstr(line, ":/");
		bool unified = strncmp(line, "0::", 3) == 0;
		if (!group || (!unified && !strstr(line, ":memory:")))
			continue;
		for (unsigned i = 0; i < (unified ? 2 : 1); i++) {
			uint64_t room = least_room(unified ? &version_2[i] : &version_1, group + 1);
			least = room < least ? room : least;
		}
	}
	return least;
}

uint64_t memory_room_of(pid_t pid)
{
	char file[32];

	snprintf(file, sizeof file, "/proc/%d/cgroup", pid);
	return cgroup_room(file);
}

int memory_room_check(uint64_t bytes, struct err *e)
{
	uint64_t group = cgroup_room("/proc/self/cgroup"),
		 machine = line_value("/proc/meminfo", "\nMemAvailable:") * 1024;
	char left[SIZE_TEXT], wanted[SIZE_TEXT];
	bool in_group = group / 2 < bytes;

	if (!in_group && (!machine || machine / 2 >= bytes))
		return 0;
	return err_set(e, ENOMEM,
	               "%s has %s left, too little for %s more: memattach takes at most half of what is left",
	               in_group ? "the memory cgroup of memattach" : "the machine",
	               size_format((double)(in_group ? group : machine), left), size_format((double)bytes, wanted));
}

void memory_room_go_first(void)
{
	AUTO_CLOSE int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "1000", 4) != 4)
		return;
}
