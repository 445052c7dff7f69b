/* SPDX-License-Identifier: MIT */
/*
 * The memfd of unwind tables (include/unwind_table.h): written here, mapped read-only into the target. Only
 * appended to: rows, then a new index after them, then index_offset is released. What an older index refers
 * to stays as it is.
 */
#pragma once

#include "elf/modules.h"
#include "unwind/unwind_compile.h"
#include "unwind_table.h"

#define UNWIND_TABLES_MAX_BYTES                                                                                        \
	(96ull << 20) /* 12 million rows, fourteen times those of libLLVM; the memfd is sparse */

struct unwind_cache;
struct unwind_stored;

struct unwind_tables {
	int fd;         /* "memattach-tables", for the target: read-only, sealed; O_CLOEXEC */
	int own;        /* the same */
	uint8_t *bytes; /* the file, mapped, the only way to write it; pages up to allocated are there */
	uint64_t max_bytes;
	uint64_t allocated;
	uint64_t used;
	uint32_t generation;          /* of the index in force, 0 none */
	struct unwind_header *header; /* bytes */
	struct unwind_stored *stored; /* rows that are in the file, by identity of the module */
	size_t stored_count;
	struct unwind_cache *cache; /* of rows from earlier sessions, the caller's; NULL after create: none */
};

int unwind_tables_create(struct unwind_tables *t, uint64_t max_bytes, struct err *e) WARN_UNUSED;
void unwind_tables_close(struct unwind_tables *t);

/* What happened to one module; written by unwind_tables_compile, same order as modules.list. */
struct unwind_coverage {
	uint32_t rows;  /* 0: no table, only frame pointers */
	bool reused;    /* rows of the same build-id were there already */
	char text[120]; /* why there is no table, "" otherwise */
};

/*
 * Compiles and appends the rows of every module that has none in the file yet, in children (unwind_worker.h). Modules
 * that fail, or whose rows find no room, are without rows and say so in coverage (m->count entries); that is no error.
 */
int unwind_tables_compile(struct unwind_tables *t, const struct modules *m, const struct target_memory *tm,
                          const struct maps *maps, struct unwind_coverage *coverage, struct err *e) WARN_UNUSED;
/* The rows of a module that was compiled, in the file: not to be freed. False: it has none. */
bool unwind_tables_rows(const struct unwind_tables *t, const struct elf_module *m, struct unwind_rows *rows);
/* Publishes a new index over all of m with the ranges of maps. Modules with id 0 are indexed without rows. -ENOSPC: no
 * room for the index: nothing is published. */
int unwind_tables_index(struct unwind_tables *t, const struct modules *m, const struct maps *maps,
                        struct err *e) WARN_UNUSED;
/* Compiles, then publishes. coverage may be NULL. */
int unwind_tables_update(struct unwind_tables *t, const struct modules *m, const struct target_memory *tm,
                         const struct maps *maps, struct unwind_coverage *coverage, struct err *e) WARN_UNUSED;

/* The pieces of update, for tests and caches. */
int unwind_tables_append(struct unwind_tables *t, const struct unwind_rows *rows, uint64_t *offset,
                         struct err *e) WARN_UNUSED;
int unwind_tables_publish(struct unwind_tables *t, struct unwind_module *modules, uint32_t module_count,
                          const struct unwind_range *ranges, uint32_t range_count, struct err *e) WARN_UNUSED;
/* Ranges of maps by UNWIND_RANGE_*, neighbours merged. *ranges is malloc'ed. */
int unwind_ranges(const struct maps *maps, struct unwind_range **ranges, uint32_t *count, struct err *e) WARN_UNUSED;
