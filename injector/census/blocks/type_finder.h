/* SPDX-License-Identifier: MIT */
/* What one block is, by its first bytes: the types that were found are in block_types, without their sums. */
#pragma once

#include "census/blocks/block_types.h"

#define TYPE_LOOK_BYTES 256u   /* of a block */
#define TYPE_PREFIX 1u         /* of a name in block_types.names: its source */
#define TYPE_NONE_WORDS 16384u /* that led to no type are remembered */

struct type_finder {
	struct block_types *types;
	const struct census_heap *heap;
	struct census_memory *memory;
	bool python;
	uint64_t none[TYPE_NONE_WORDS];
};

/* Into types, which is empty; its first type is that of blocks that are not named. -ENOMEM. */
int type_finder_open(struct type_finder *f, struct block_types *types, const struct census_heap *heap,
                     struct census_memory *memory, struct err *e) WARN_UNUSED;
/* The number of the type of a block that begins so. -ENOMEM. */
int type_finder_find(struct type_finder *f, const uint8_t *data, size_t have, uint32_t *number,
                     struct err *e) WARN_UNUSED;
