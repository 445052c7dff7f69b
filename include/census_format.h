/* SPDX-License-Identifier: MIT */
/*
 * The file of a census (memattach --census -o FILE). memattach-dump(5) describes it.
 *
 * A header, rows, and a table of strings, each of which ends with a NUL. All numbers are little-endian. Nothing in it
 * is trusted: a reader checks every offset and length against the size of the file.
 */
#pragma once

#include <stdint.h>

#define CENSUS_MAGIC "MEMCENSU"
#define CENSUS_VERSION 1u
#define CENSUS_FILE_MAX (64u << 20) /* more is no census */

enum census_table {
	CENSUS_TABLE_REGIONS = 1, /* count: mappings; bytes: resident; more: swapped */
	CENSUS_TABLE_SIZES = 2,   /* count: live blocks; bytes: of their chunks; more: free memory that they keep */
	CENSUS_TABLE_TYPES = 3,   /* count: live blocks; bytes: usable ones */
	CENSUS_TABLE_HOLDERS = 4, /* the same, by who holds them; kind "" */
	CENSUS_TABLE_LOST = 5,    /* those that nothing points to, by type, and a row without a name */
};

struct census_header {
	char     magic[8];
	uint32_t version;
	uint32_t header_bytes;
	uint64_t file_bytes;
	uint64_t realtime_ns;     /* when it was taken */
	uint64_t start_ticks;     /* of the process: field 22 of /proc/PID/stat */
	uint32_t pid;
	uint32_t row_count;
	uint64_t resident;        /* bytes */
	uint64_t swapped;
	uint64_t malloc_live;     /* resident bytes */
	uint64_t malloc_freed;
	uint64_t malloc_trim;
	uint64_t rows_offset;
	uint64_t strings_offset;
	uint64_t strings_bytes;
	char     command[32];     /* ends with a NUL */
};

struct census_row {
	uint32_t table;           /* enum census_table; a reader passes over others */
	uint32_t kind;            /* offset of a string */
	uint32_t name;            /* the same */
	uint32_t reserved;
	uint64_t count;
	uint64_t bytes;
	uint64_t more;
};

_Static_assert(sizeof(struct census_header) == 144, "struct census_header");
_Static_assert(sizeof(struct census_row) == 40, "struct census_row");
