/* SPDX-License-Identifier: MIT */
#include "maps/target_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "maps/maps_at.h"
#include "files/regular_file.h"

static int open_regular(int place)
{
	int fd = place < 0 ? -1 : regular_file_reopen(place);

	return fd < 0 ? -1 : fd;
}

void target_file_link(pid_t pid, const struct mapping *map, char link[TARGET_FILE_LINK])
{
	snprintf(link, TARGET_FILE_LINK, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid, map->start, map->end);
}

/* *permitted: whether the link may be followed at all. */
static int open_mapped(pid_t pid, const struct mapping *map, bool *permitted)
{
	char link[TARGET_FILE_LINK];

	target_file_link(pid, map, link);
	AUTO_CLOSE int fd = open(link, O_PATH | O_CLOEXEC);
	*permitted = fd >= 0 || (errno != EPERM && errno != EACCES);
	return open_regular(fd);
}

static int open_below_root(pid_t pid, const char *name)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	char path[40];

	snprintf(path, sizeof path, "/proc/%d/root", (int)pid);
	AUTO_CLOSE int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int fd = root < 0 ? -1 : (int)syscall(SYS_openat2, root, name, &how, sizeof how);
	return open_regular(fd);
}

static bool is_file_of(int fd, const struct mapping *map)
{
	void *own = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
	const uint64_t address = (uint64_t)(uintptr_t)own;
	struct maps maps;

	if (own == MAP_FAILED)
		return false;
	bool same = false;
	if (maps_at_read(&maps, "/proc/self/maps", &address, 1, ERR_IGNORED) == 0) {
		const struct mapping *here = maps_find(&maps, address);
		same = here && mapping_same_file(here, map);
		maps_free(&maps);
	}
	munmap(own, 1);
	return same;
}

int target_file_open(pid_t pid, const struct mapping *map, const char *name)
{
	bool permitted;

	if (!map->inode)
		return -1;
	int mapped = open_mapped(pid, map, &permitted);
	if (permitted || name[0] != '/' || map->deleted)
		return mapped;
	AUTO_CLOSE int fd = open_below_root(pid, name);
	return fd >= 0 && is_file_of(fd, map) ? cleanup_steal_fd(&fd) : -1;
}
