/* SPDX-License-Identifier: MIT */
/*
 * What memattach has opened in time for naming the frames of a dump: the root directory of the target, and the files of
 * its modules, as descriptors (include/symbol_request.h).
 */
#pragma once

#include "input/images.h"
#include "debug_info/jail.h"

struct given_files {
	char root[IMAGE_ROOT_TEXT]; /* of the target, "": none */
	struct {
		uint32_t id; /* of the module */
		int fd;
	} list[JAIL_FILES_MAX];
	size_t count;
	int descriptors[JAIL_FILES_MAX]; /* of all, and the root */
	size_t descriptor_count;
};

/* root: 0 is none; files: ID:DESCRIPTOR, with commas between. What makes no sense is left out. */
void given_files_take(struct given_files *given, int root, const char *files);
struct jail_files given_files_descriptors(const struct given_files *given);
/* Tells the images of the dump. */
void given_files_apply(const struct given_files *given, struct images *images, const struct image_map *map);
