/* SPDX-License-Identifier: MIT */
/*
 * What blocks are that were sampled, and who holds them. Whole, without pointers, in memory that is shared: one process
 * finds it out and another uses it.
 */
#pragma once

#include "census/heap/census_heap.h"
#include "dump_format.h"

#define BLOCK_LABELS_MAX (1u << 20)
#define BLOCK_LABELS_TEXT (2u << 20) /* bytes of the names of each kind, each behind its source */

struct block_label {
	uint64_t address, bytes;
	uint32_t type, holder; /* as in struct dump_block */
};

struct block_labels {
	uint32_t count;
	uint32_t names[2]; /* types, holders: how many, */
	uint32_t used[2];  /* and bytes of text */
	uint64_t looked_at;
	bool cut;
	bool holders_known;
	char why[DUMP_MEMORY_NAME_MAX];            /* they are not, or "" */
	struct block_label list[BLOCK_LABELS_MAX]; /* by address, once it is sorted */
	char text[2][BLOCK_LABELS_TEXT];
};

/* NULL: no memory. Of what is not used nothing is there. */
struct block_labels *block_labels_new(void);
void block_labels_free(struct block_labels *labels);

/* False: there is no room. */
bool block_labels_add(struct block_labels *labels, uint64_t address, uint64_t bytes);
void block_labels_sort(struct block_labels *labels);
/* A new name of a kind (0 types, 1 holders); its id, 0: there is no room. */
uint32_t block_labels_name(struct block_labels *labels, unsigned kind, enum dump_type_source source, const char *name);
/* Finds the types of all, in so much CPU time. -ENOMEM. */
int block_labels_find_types(struct block_labels *labels, const struct census_heap *heap, struct census_memory *memory,
                            uint64_t ns, struct err *e) WARN_UNUSED;
