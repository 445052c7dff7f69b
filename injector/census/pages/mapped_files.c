/* SPDX-License-Identifier: MIT */
#include "census/pages/mapped_files.h"

#include <string.h>
#include <unistd.h>

#include "files/whole_io.h"
#include "maps/target_file.h"
#include "process/task.h"

void mapped_files_open(struct mapped_files *f, const struct target *t, const struct maps *maps)
{
	*f = (struct mapped_files){ .pid = task_alive(t->pid), .maps = maps };
}

void mapped_files_close(struct mapped_files *f)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->files[i].fd >= 0)
			close(f->files[i].fd);
	f->count = 0;
}

static int file_of(struct mapped_files *f, const struct mapping *m)
{
	for (size_t i = 0; i < f->count; i++)
		if (mapping_same_file(f->files[i].mapping, m))
			return f->files[i].fd;
	const size_t slot = f->count < MAPPED_FILES_MAX ? f->count++ : f->next++ % MAPPED_FILES_MAX;
	if (f->files[slot].mapping && f->files[slot].fd >= 0)
		close(f->files[slot].fd);
	f->files[slot].mapping = m;
	f->files[slot].fd = target_file_open(f->pid, m, m->path);
	return f->files[slot].fd;
}

bool mapped_files_read(struct mapped_files *f, uint64_t page, void *buffer, size_t bytes)
{
	const struct mapping *m = maps_find(f->maps, page);

	if (!m || !m->inode || m->path[0] != '/' || !strncmp(m->path, "/dev/", 5))
		return false;
	const int fd = file_of(f, m);
	return fd >= 0 && whole_io_pread(fd, buffer, bytes, m->offset + (page - m->start));
}
