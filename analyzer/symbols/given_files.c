/* SPDX-License-Identifier: MIT */
#include "symbols/given_files.h"

#include <stdio.h>

static void add_descriptor(struct given_files *g, int fd)
{
	if (g->descriptor_count < JAIL_FILES_MAX)
		g->descriptors[g->descriptor_count++] = fd;
}

void given_files_take(struct given_files *g, int root, const char *files)
{
	unsigned id;
	int fd, used;

	*g = (struct given_files){ .count = 0 };
	if (root > JAIL_DESCRIPTOR) {
		snprintf(g->root, sizeof g->root, "/proc/self/fd/%d", root);
		add_descriptor(g, root);
	}
	for (; sscanf(files, "%u:%d%n", &id, &fd, &used) == 2; files += files[used] == ',' ? used + 1 : used) {
		if (id > UINT16_MAX || fd <= JAIL_DESCRIPTOR || g->descriptor_count == JAIL_FILES_MAX)
			continue;
		g->list[g->count].id = id;
		g->list[g->count++].fd = fd;
		add_descriptor(g, fd);
	}
}

struct jail_files given_files_descriptors(const struct given_files *g)
{
	return (struct jail_files){ .list = g->descriptors, .count = g->descriptor_count };
}

void given_files_apply(const struct given_files *g, struct images *images, const struct image_map *map)
{
	for (size_t i = 0; i < g->count; i++) {
		uint32_t image = map->image_of[g->list[i].id];
		if (image && !images->list[image].file)
			images->list[image].file = g->list[i].fd;
	}
}
