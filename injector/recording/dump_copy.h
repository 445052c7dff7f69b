/* SPDX-License-Identifier: MIT */
/*
 * Copies the memory of a dump, which the payload may be changing, into a file that memanalyze reads.
 *
 * The copy stands for one moment as well as a reader of the memory could see it. First come live records and history,
 * with the regions that memattach adds meanwhile; then the counters and the clock, so no more is live than was taken;
 * then the index of stacks, the stacks, and the rest. So whatever a record refers to is in the copy, and a block that
 * is freed meanwhile is in it twice rather than not at all. A live record that changes while it is copied is read
 * again. What is zero stays a hole of the file.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "dump_format.h"
#include "recording/dump_writer.h"
#include "base/err.h"

struct dump_source {
	/* As it is to be in the copy. Its regions are those of a writer of ours, or have been checked by
	 * dump_source_check. */
	struct dump_header header;
	int (*read)(const struct dump_source *source, uint64_t offset, void *buffer, size_t bytes, struct err *e);
	void (*update)(const struct dump_source *source,
	               struct dump_header *h); /* the header as of now; NULL: nothing changes any more */
	const void *context;
	uint64_t longer_ns;       /* added to the lease of a session that lasts */
	bool sparse;              /* lseek of fd tells what was never touched, at the offsets of read() */
	int fd;                   /* that read() needs, -1: none */
	_Atomic uint64_t *copied; /* bytes of regions so far, for a progress line; may be NULL */
};

/* The memory of this process's own writer, as of now. */
void dump_source_of_writer(struct dump_source *source, const struct dump_writer *w);
/* Are the regions of a header that somebody else wrote within `bytes`, in order, and of a known kind? -EPROTO. */
int dump_source_check(const struct dump_source *source, uint64_t bytes, struct err *e) WARN_UNUSED;
/* Bytes of all regions. */
uint64_t dump_source_bytes(const struct dump_source *source);

/* Writes the copy into an empty file. -errno of a read or a write; the file is then to be thrown away. */
int dump_copy(const struct dump_source *source, int fd, struct err *e) WARN_UNUSED;
