/* SPDX-License-Identifier: MIT */
/*
 * The files that memattach has brought into the target, by device and inode: what is left of them is residue. Names
 * would not do, because the target can give any name to what it maps.
 */
#pragma once

#include "maps/maps.h"

#define OURS_MAX 16u

struct ours {
	struct {
		uint64_t inode;
		uint32_t dev_major;
		uint32_t dev_minor;
	} files[OURS_MAX];
	unsigned count;
};

void ours_add_descriptor(struct ours *o, int fd);
void ours_add_mapping(struct ours *o, const struct mapping *m);
/* For a session whose memattach has died, of which nothing else tells: what has our names. */
void ours_add_named(struct ours *o, const struct maps *maps);
bool ours_has(const struct ours *o, uint32_t dev_major, uint32_t dev_minor, uint64_t inode);
