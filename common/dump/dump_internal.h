/* SPDX-License-Identifier: MIT */
/* What the files of the dump reader share. */
#pragma once

#include <stddef.h>

#include "dump/dump_reader.h"
#include "stats/thinning.h"

struct dump {
	int fd;
	bool owns_fd;
	uint64_t disk_bytes; /* without holes */
	uint64_t file_bytes; /* when it was opened, after the header was read */
	enum dump_end end;
	uint64_t latest_stamp; /* latest time that is known to be recorded */
	uint32_t region_count;
	struct dump_region regions[DUMP_REGION_MAX]; /* checked, in the order of the file */
	uint64_t skipped[DUMP_SKIP_COUNT];
	struct thinning_index thinnings;
	struct dump_header header;
};

/* No block is larger than the address space; more is damage. */
#define DUMP_SIZE_LIMIT (1ull << 57)

/* Reads dump->thinnings anew. -ENOMEM */
int dump_read_thinnings(struct dump *dump) WARN_UNUSED;

static inline void dump_skip(struct dump *dump, enum dump_skip reason)
{
	dump->skipped[reason]++;
}

/* Of a region, as far as the file has it. */
static inline uint64_t dump_region_end(const struct dump *dump, const struct dump_region *r)
{
	uint64_t end = r->offset + r->bytes;

	return end < dump->file_bytes ? end : dump->file_bytes;
}

/*
 * The checked accessor: reads length bytes at offset, or as many as the file has; how many, 0 on failure. What is
 * missing is counted as short_file or read_error.
 */
size_t dump_read(struct dump *dump, uint64_t offset, void *buffer, size_t length);

/* Where the record of a reference is, and how many bytes the file has from there to the end of its region; 0: it is in
 * no region of stacks. */
uint64_t dump_stack_place(const struct dump *dump, uint32_t reference, uint64_t *offset);

/*
 * Nanoseconds from one stamp to the next: by when recording began and the latest renewal; where memattach was killed
 * before it renewed anything, by the lease, which is the same instant on both clocks. 0: the clocks make no sense.
 */
double dump_ns_per_stamp(const struct dump *dump);
