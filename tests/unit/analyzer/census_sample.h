/* SPDX-License-Identifier: MIT */
/* A small file of --census, with what a reader must take: each table, a row twice, one of an unknown table, an escape
 * in a name. */
#pragma once

#include <stddef.h>

#include "census_format.h"

struct census_sample {
	struct census_header header;
	struct census_row rows[6];
	char strings[32];
};

static const struct census_sample census_sample = {
	.header = { .magic = { 'M', 'E', 'M', 'C', 'E', 'N', 'S', 'U' },
	            .version = CENSUS_VERSION,
	            .header_bytes = sizeof(struct census_header),
	            .file_bytes = sizeof(struct census_sample),
	            .realtime_ns = 60000000000,
	            .pid = 812,
	            .row_count = 6,
	            .resident = 1 << 20,
	            .rows_offset = offsetof(struct census_sample, rows),
	            .strings_offset = offsetof(struct census_sample, strings),
	            .strings_bytes = sizeof census_sample.strings,
	            .command = "server" },
	.rows = { { CENSUS_TABLE_TYPES, 1, 8, 0, 10, 1000, 0 },
	          { CENSUS_TABLE_REGIONS, 0, 8, 0, 1, 4096, 0 },
	          { CENSUS_TABLE_TYPES, 1, 8, 0, 5, 500, 0 },
	          { 77, 0, 0, 0, 1, 1, 1 },
	          { CENSUS_TABLE_HOLDERS, 0, 8, 0, 3, 300, 0 },
	          { CENSUS_TABLE_LOST, 1, 8, 0, 2, 200, 0 } },
	.strings = "\0vtable\0shop::Book\0\033[31m",
};
