/* SPDX-License-Identifier: MIT */
/* What the files of the dump writer share. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "recording/dump_writer.h"

/* Words of the dump that the payload and memattach share. */
static inline _Atomic uint64_t *dump_writer_u64(uint64_t *word)
{
	return (_Atomic uint64_t *)word;
}

static inline _Atomic uint32_t *dump_writer_u32(uint32_t *word)
{
	return (_Atomic uint32_t *)word;
}

static inline uint64_t dump_writer_align(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

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
/* Hands out bytes of the youngest arena of a kind, adding one if it is full. */
int dump_writer_take(struct dump_writer *w, uint32_t kind, uint64_t bytes, void **record, uint64_t *offset,
                     struct err *e) WARN_UNUSED;
