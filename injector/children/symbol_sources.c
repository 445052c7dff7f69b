/* SPDX-License-Identifier: MIT */
#include "children/symbol_sources.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "elf/module_file.h"
#include "process/proc_status.h"
#include "process/task.h"

#define PART_OF_DESCRIPTORS 4u

static int open_memanalyze(void)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

	if (n <= 0)
		return -1;
	path[n] = 0;
	char *slash = strrchr(path, '/');
	if (!slash || (size_t)(slash + sizeof "/memanalyze" - path) > sizeof path)
		return -1;
	memcpy(slash, "/memanalyze", sizeof "/memanalyze");
	return open(path, O_PATH | O_CLOEXEC);
}

/* The clock that start_ticks counts from goes on while the machine sleeps. */
static uint64_t realtime_of(uint64_t start_ticks)
{
	struct timespec boot, real;
	uint64_t hertz = (uint64_t)sysconf(_SC_CLK_TCK);

	clock_gettime(CLOCK_BOOTTIME, &boot);
	clock_gettime(CLOCK_REALTIME, &real);
	uint64_t up_ns = (uint64_t)boot.tv_sec * 1000000000u + (uint64_t)boot.tv_nsec;
	uint64_t now_ns = (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec;
	uint64_t start_ns = start_ticks / hertz * 1000000000u + start_ticks % hertz * 1000000000u / hertz;
	return now_ns - up_ns + start_ns;
}

void symbol_sources_open(struct symbol_sources *s, const struct target *target)
{
	char path[40], text[STATUS_BYTES];
	unsigned uid = 0, gid = 0;

	snprintf(path, sizeof path, "/proc/%d/root", target->pid);
	*s = (struct symbol_sources){ .program = open_memanalyze(),
		                      .root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC),
		                      .inner_pid = task_inner_tid(target->pid, target->pid),
		                      .started_realtime_ns = realtime_of(target->start_ticks) };
	/* The effective one, the second of four. What is done with it: common/sandbox/rights.h. */
	const char *ids = proc_status_read(text, target->pid, 0) == 0 ? proc_status_field(text, "Uid") : NULL;
	if (ids && sscanf(ids, "%*u %u", &uid) == 1)
		s->uid = uid;
	ids = ids ? proc_status_field(text, "Gid") : NULL;
	if (ids && sscanf(ids, "%*u %u", &gid) == 1)
		s->gid = gid;
}

void symbol_sources_close(struct symbol_sources *s)
{
	if (s->program >= 0)
		close(s->program);
	if (s->root >= 0)
		close(s->root);
	for (size_t i = 0; i < s->file_count; i++)
		close(s->files[i].fd);
	free(s->files);
	*s = (struct symbol_sources){ .program = -1, .root = -1 };
}

static bool has_room(const struct symbol_sources *s)
{
	struct rlimit limit;

	return s->file_count < SYMBOL_FILES_MAX && !getrlimit(RLIMIT_NOFILE, &limit) &&
	       s->file_count < limit.rlim_cur / PART_OF_DESCRIPTORS;
}

/* A library that comes and goes is held once. */
static bool is_held(const struct symbol_sources *s, const struct symbol_source *file)
{
	for (size_t i = 0; i < s->file_count; i++)
		if (s->files[i].build_id_bytes == file->build_id_bytes &&
		    !memcmp(s->files[i].build_id, file->build_id, file->build_id_bytes))
			return true;
	return false;
}

void symbol_sources_add(struct symbol_sources *s, const struct elf_module *m, const struct target_memory *memory,
                        const struct maps *maps)
{
	struct symbol_source file = { .id = m->id };
	struct module_file opened;

	if (s->program < 0 || m->is_vdso || !m->build_id_bytes || m->build_id_bytes > sizeof file.build_id ||
	    !has_room(s))
		return;
	file.build_id_bytes = m->build_id_bytes;
	memcpy(file.build_id, m->build_id, m->build_id_bytes);
	if (is_held(s, &file))
		return;
	module_file_open(&opened, m, memory, maps);
	file.fd = opened.fd;
	if (file.fd < 0)
		return;
	if (!grow_list(s->files, s->file_count))
		close(file.fd);
	else
		s->files[s->file_count++] = file;
}
