/* SPDX-License-Identifier: MIT */
#include "process/memory_room.h"

#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/size.h"
#include "files/whole_io.h"
#include "host/cgroup_number.h"

#define NO_LIMIT (1ull << 62) /* version 1 has a number for it, a little less than 2^63 */
#define PRESSURE_SOME "some avg10="

/* Files of one version of the memory controller (cgroup-v1/memory.rst and cgroup-v2.rst of the kernel's documentation).
 */
struct controller {
	const char *mount, *limit, *usage, *reclaimable, *events;
};

static const struct controller version_1 = { "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
	                                     "\ntotal_inactive_file ", "memory.oom_control" };
static const struct controller version_2[] = {
	{ "/sys/fs/cgroup", "memory.max", "memory.current", "\ninactive_file ", "memory.events" },
	{ "/sys/fs/cgroup/unified", "memory.max", "memory.current", "\ninactive_file ", "memory.events" },
};

/* A number of a file of lines "name number"; key is "\nname ". 0: not there. */
static uint64_t line_value(const char *path, const char *key)
{
	char text[16384] = "\n";

	if (whole_io_text(path, text + 1, sizeof text - 1) < 0)
		return 0;
	const char *at = strstr(text, key);
	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* What a group uses without the page cache that can be reclaimed at no cost. False: it has no limit. */
static bool group_use(const struct controller *c, const char *directory, uint64_t *limit, uint64_t *usage)
{
	char path[800];

	if (!cgroup_number(directory, c->limit, limit) || *limit >= NO_LIMIT ||
	    !cgroup_number(directory, c->usage, usage))
		return false;
	snprintf(path, sizeof path, "%s/memory.stat", directory);
	uint64_t reclaimable = line_value(path, c->reclaimable);
	*usage = *usage > reclaimable ? *usage - reclaimable : 0;
	return true;
}

/* What is asked of the groups of a process, and of those that they are in. */
struct groups {
	uint64_t least;     /* that one has left; UINT64_MAX: none has a limit */
	double used;        /* the largest part of a limit, NAN the same */
	bool ends_all;      /* one of them is ended as a whole */
	char own[800];      /* "…/memory.events" of the process's own group, "" unknown; … */
	char pressure[800]; /* … and "…/memory.pressure" */
};

static void look_at_group(struct groups *g, const struct controller *c, const char *directory)
{
	uint64_t limit, usage, ends_all;

	g->ends_all |= cgroup_number(directory, "memory.oom.group", &ends_all) && ends_all;
	if (!group_use(c, directory, &limit, &usage))
		return;
	uint64_t room = limit > usage ? limit - usage : 0;
	g->least = room < g->least ? room : g->least;
	if (limit)
		g->used = fmax(g->used, (double)usage / (double)limit);
}

static void note_file(char own[800], const char *directory, const char *name)
{
	if ((size_t)snprintf(own, 800, "%s/%s", directory, name) >= 800 || access(own, R_OK) < 0)
		own[0] = '\0';
}

/* A group and those that it is in. group begins with a slash. */
static void look_upwards(struct groups *g, const struct controller *c, const char *group)
{
	char directory[700];

	if ((size_t)snprintf(directory, sizeof directory, "%s%s", c->mount, group) >= sizeof directory)
		return;
	if (!g->own[0])
		note_file(g->own, directory, c->events);
	if (!g->pressure[0])
		note_file(g->pressure, directory, "memory.pressure");
	for (char *slash; strlen(directory) >= strlen(c->mount); *slash = '\0') {
		look_at_group(g, c, directory);
		slash = strrchr(directory, '/');
	}
}

/* /proc/PID/cgroup has a line "0::/group" for version 2 and "number:controllers:/group" for each hierarchy of
 * version 1. */
static struct groups look_at_groups(const char *file)
{
	struct groups g = { .least = UINT64_MAX, .used = NAN };
	char text[4096], *rest = text;

	if (whole_io_text(file, text, sizeof text) < 0)
		return g;
	for (char *line; (line = strsep(&rest, "\n"));) {
		const char *group = strstr(line, ":/");
		bool unified = strncmp(line, "0::", 3) == 0;
		if (!group || (!unified && !strstr(line, ":memory:")))
			continue;
		for (unsigned i = 0; i < (unified ? 2 : 1); i++)
			look_upwards(&g, unified ? &version_2[i] : &version_1, group + 1);
	}
	return g;
}

static struct groups groups_of(pid_t pid)
{
	char file[32];

	snprintf(file, sizeof file, "/proc/%d/cgroup", pid);
	return look_at_groups(file);
}

double memory_room_used(pid_t pid)
{
	return groups_of(pid).used;
}

void memory_room_events(pid_t pid, char file[MEMORY_ROOM_PATH])
{
	snprintf(file, MEMORY_ROOM_PATH, "%s", groups_of(pid).own);
}

uint64_t memory_room_kills(const char *file)
{
	return file[0] ? line_value(file, "\noom_kill ") : 0;
}

double memory_room_pressure(pid_t pid)
{
	struct groups g = groups_of(pid);
	char text[512];

	if (whole_io_text(g.pressure[0] ? g.pressure : "/proc/pressure/memory", text, sizeof text) < 0 ||
	    strncmp(text, PRESSURE_SOME, strlen(PRESSURE_SOME)) != 0)
		return NAN;
	return strtod(text + strlen(PRESSURE_SOME), NULL) / 100;
}

bool memory_room_ends_all(pid_t pid)
{
	return groups_of(pid).ends_all;
}

uint64_t memory_room_of(pid_t pid)
{
	return groups_of(pid).least;
}

uint64_t memory_room_of_machine(void)
{
	char text[4096];

	const char *at = whole_io_text("/proc/meminfo", text, sizeof text) == 0 ? strstr(text, "MemAvailable:") : NULL;
	return at ? strtoull(at + strlen("MemAvailable:"), NULL, 10) * 1024 : UINT64_MAX;
}

int memory_room_check(uint64_t bytes, struct err *e)
{
	uint64_t group = look_at_groups("/proc/self/cgroup").least, machine = memory_room_of_machine();
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
