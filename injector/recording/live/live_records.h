/* SPDX-License-Identifier: MIT */
/* The live records of a recording, as memattach looks at them while the target changes them. */
#pragma once

#include "recording/dump_writer.h"

/* A level of the table. */
struct live_table {
	_Atomic uint8_t *tags;
	struct dump_live_record *records;
	uint64_t entries;
};

static inline _Atomic uint64_t *live_table_key(const struct live_table *t, uint64_t k)
{
	return (_Atomic uint64_t *)&t->records[k].address;
}

/* A walk over all levels, which begins with the writer alone. */
struct live_walk {
	const struct dump_writer *writer;
	struct live_table table;
	uint64_t k;                     /* of this record in the table */
	struct dump_live_record record; /* a copy of it */
	uint32_t region;
	uint64_t next;
};

/* The next record that is complete; false: there is none. */
bool live_walk_next(struct live_walk *x);
