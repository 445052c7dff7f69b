/* SPDX-License-Identifier: MIT */
/*
 * The live blocks of malloc as places that pointers lead to: which one an address is in, and which were reached.
 *
 * A pointer anywhere into a block counts, and also one to its end, which is where the header of the next chunk is. A
 * block has a number, of 32 bytes of heap each, which no two chunks share: it stays the same when others come and go.
 */
#pragma once

#include "arch/address_bits.h"
#include "census/heap/census_heap.h"

struct block_part {
	uint64_t start, end;
	uint64_t first;               /* number of what is at its start */
	struct heap_segment *segment; /* NULL: one block with a mapping of its own */
	bool gone;                    /* something else is there now */
};

struct block_space {
	struct block_part *parts; /* by address */
	size_t count;
	const struct block_part *last; /* found */
	uint64_t number_count;
	uint64_t *reached;      /* bits, by number */
	uint64_t *near;         /* bits: which 64 MiB have parts */
	uint64_t reached_bytes; /* what is mapped for the bits */
};

struct block {
	uint64_t start, end; /* usable bytes */
	uint32_t number;
};

/* After heap was walked, which must stay. -ENOMEM; -E2BIG: there is too much for its numbers. block_space_close
 * afterwards; on failure, too. */
int block_space_open(struct block_space *b, const struct census_heap *heap, struct err *e) WARN_UNUSED;
void block_space_close(struct block_space *b);

/* The part that has an address, or NULL; and by its place: the first part that ends above it. */
const struct block_part *block_space_part(struct block_space *b, uint64_t address);
size_t block_space_from(const struct block_space *b, uint64_t address);
/* Reaches the live block that an address near one leads to. False: there is none, or it was reached before. */
bool block_space_reach(struct block_space *b, uint64_t address, uint32_t *number);
/* May an address lead to a block? Nearly none does, of words that are no pointers. */
static inline bool block_space_near(const struct block_space *b, uint64_t address)
{
	return address >> ADDRESS_BITS == 0 && b->near[address >> 32] >> (address >> 26) % 64 & 1;
}
bool block_space_is_reached(const struct block_space *b, uint32_t number);
/* The block of a number; without a byte, where none is there any more. */
struct block block_space_block(const struct block_space *b, uint32_t number);
/* The first live block of a part that ends above an address. False: there is none. */
bool block_space_next(const struct block_part *p, uint64_t address, struct block *block);
