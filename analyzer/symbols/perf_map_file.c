/* SPDX-License-Identifier: MIT */
#include "symbols/perf_map_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbols/perf_map.h"
#include "files/regular_file.h"

#define EARLY_NS 1000000000ull /* clocks of files are coarse */

static int open_below(int directory, const char *name, uint64_t flags, uint64_t resolve)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | O_NOFOLLOW | flags,
		                .resolve = resolve | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS };

	return (int)syscall(SYS_openat2, directory, name, &how, sizeof how);
}

static enum symbol_map judge(const struct perf_map_file *f, int place)
{
	struct stat st;

	if (fstat(place, &st))
		return SYMBOL_MAP_CLOSED;
	if (st.st_uid != f->uid && st.st_uid != 0)
		return SYMBOL_MAP_FOREIGN;
	if (st.st_size > (off_t)PERF_MAP_BYTES_MAX)
		return SYMBOL_MAP_LARGE;
	uint64_t changed_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
	return changed_ns + EARLY_NS >= f->started_realtime_ns ? SYMBOL_MAP_FINE : SYMBOL_MAP_OLD;
}

int perf_map_file_open(const struct perf_map_file *f, enum symbol_map *refused)
{
	char name[40];

	snprintf(name, sizeof name, "perf-%d.map", f->pid);
	AUTO_CLOSE int tmp = open_below(f->root, "tmp", O_DIRECTORY, RESOLVE_IN_ROOT);
	AUTO_CLOSE int place = tmp < 0 ? -1 : open_below(tmp, name, 0, RESOLVE_BENEATH | RESOLVE_NO_XDEV);
	if (place < 0) {
		*refused = errno == EXDEV ? SYMBOL_MAP_MOUNTED : errno == ENOENT ? SYMBOL_MAP_FINE : SYMBOL_MAP_CLOSED;
		return -1;
	}
	AUTO_CLOSE int fd = regular_file_reopen(place);
	*refused = fd == -ESPIPE || fd == -EISDIR || fd == -ELOOP ? SYMBOL_MAP_SPECIAL : judge(f, place);
	if (fd < 0 && *refused == SYMBOL_MAP_FINE)
		*refused = SYMBOL_MAP_CLOSED;
	return *refused == SYMBOL_MAP_FINE ? cleanup_steal_fd(&fd) : -1;
}
