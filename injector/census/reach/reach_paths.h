/* SPDX-License-Identifier: MIT */
/*
 * How blocks were reached first, kept by reach.h if it is asked to: the block, or the place in other memory, that led
 * to each; 8 bytes a block. Blocks are in the order in which they were reached, breadth first, so that those to which a
 * block has led follow each other.
 */
#ifndef MEMATTACH_REACH_PATHS_H
#define MEMATTACH_REACH_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct reach_root {
	uint32_t index;   /* of the block that it led to */
	uint64_t address; /* of the word */
};

struct reach_paths {
	bool kept;
	uint32_t *parents;        /* by index: twice the number of the one that led to it, from 1 on; odd: a root did */
	struct reach_root *roots; /* by index */
	size_t root_count;
	uint32_t pass_start; /* how many blocks there were when the last pass over other memory began */
};

/* The next block, to which the one with index `parent` leads, or a word elsewhere. -ENOMEM. */
int reach_paths_add(struct reach_paths *p, uint32_t index, uint32_t parent, struct err *e) WARN_UNUSED;
int reach_paths_add_root(struct reach_paths *p, uint32_t index, uint64_t address, struct err *e) WARN_UNUSED;
/* False: a root led to it. */
bool reach_paths_parent(const struct reach_paths *p, uint32_t index, uint32_t *parent);
/*
 * Of `count` blocks those to which [*first, *end) have led, which become the range; it may be empty. The range has the
 * children of one block, or what this gave for them.
 */
void reach_paths_children(const struct reach_paths *p, size_t count, uint32_t *first, uint32_t *end);
void reach_paths_free(struct reach_paths *p);

#endif
