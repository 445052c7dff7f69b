/* SPDX-License-Identifier: MIT */
#include "process/ours.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

bool ours_has(const struct ours *o, uint32_t dev_major, uint32_t dev_minor, uint64_t inode)
{
	for (unsigned i = 0; inode && i < o->count; i++)
		if (o->files[i].inode == inode && o->files[i].dev_major == dev_major &&
		    o->files[i].dev_minor == dev_minor)
			return true;
	return false;
}

static void add(struct ours *o, uint32_t dev_major, uint32_t dev_minor, uint64_t inode)
{
	if (!inode || ours_has(o, dev_major, dev_minor, inode) || o->count == OURS_MAX)
		return;
	o->files[o->count].inode = inode;
	o->files[o->count].dev_major = dev_major;
	o->files[o->count++].dev_minor = dev_minor;
}

void ours_add_descriptor(struct ours *o, int fd)
{
	struct stat st;

	if (fstat(fd, &st) == 0)
		add(o, major(st.st_dev), minor(st.st_dev), st.st_ino);
}

void ours_add_mapping(struct ours *o, const struct mapping *m)
{
	if (m)
		add(o, m->dev_major, m->dev_minor, m->inode);
}

void ours_add_named(struct ours *o, const struct maps *maps)
{
	for (size_t i = 0; i < maps->count; i++)
		if (strncmp(maps->list[i].path, "/memfd:memattach-", 17) == 0)
			ours_add_mapping(o, &maps->list[i]);
}
