/* SPDX-License-Identifier: MIT */
/* The live records of a recording, as memattach looks at them while the target changes them. */
#ifndef MEMATTACH_LIVE_RECORDS_H
#define MEMATTACH_LIVE_RECORDS_H

#include "recording/dump_writer.h"

/* A level of the table. */
struct live_table {
	_Atomic uint8_t *tags;
	struct dump_live_record *records;
	uint64_t entries;
};

/* The next level from region *i on, which begins as 0; false: there is none. */
bool live_table_next(const struct dump_writer *w, uint32_t *i, struct live_table *t);
static inline _Atomic uint64_t *live_table_key(const struct live_table *t, uint64_t k)
{
	return (_Atomic uint64_t *)&t->records[k].address;
}
/* A copy of record k, if it is complete. */
bool live_table_read(const struct live_table *t, uint64_t k, struct dump_live_record *record);

#endif
