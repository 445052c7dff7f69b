/* SPDX-License-Identifier: MIT */
/* What the files of the dump writer share. */
#ifndef MEMATTACH_DUMP_WRITER_INTERNAL_H
#define MEMATTACH_DUMP_WRITER_INTERNAL_H

#include "recording/atomic.h"
#include "recording/dump_writer.h"

/* An offset that memattach itself has handed out. */
static inline void *dump_writer_at(const struct dump_writer *w, uint64_t offset)
{
	return (char *)w->shared + offset;
}

static inline int dump_writer_full(struct err *e)
{
	return err_set(e, ENOSPC, "the dump has reached its size limit (--max-size)");
}

/* Allocates the memory of a region after what is there, and publishes it. */
int dump_writer_add_region(struct dump_writer *w, uint32_t kind, uint64_t bytes, uint64_t entries,
                           struct err *e) WARN_UNUSED;

#endif
