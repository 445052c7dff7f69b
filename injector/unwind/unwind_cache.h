/* SPDX-License-Identifier: MIT */
/*
 * Compiled unwind rows, kept between sessions (common/base/cache_dir.h): one file for each build-id. Rows are a pure
 * function of the call frame information and the extent of the code, so a file also holds a hash of these: a module
 * that merely claims a known build-id finds nothing, and replaces the file.
 *
 * Size and order of the rows of a file are checked, and it is passed over when anything is wrong. Wrong rows make wrong
 * stacks; on the main stack and those of threads no more than that, since the payload reads only what is certain to be
 * there.
 */
#ifndef MEMATTACH_UNWIND_CACHE_H
#define MEMATTACH_UNWIND_CACHE_H

#include "cache_dir.h"
#include "unwind_compile.h"

#define UNWIND_CACHE_MAX_BYTES (256ull << 20)

struct unwind_cache {
	struct cache_dir files;
};

/* What rows are for. */
struct unwind_cache_key {
	const uint8_t *build_id;
	uint32_t build_id_bytes; /* 0: neither loaded nor stored */
	uint64_t source_hash;
	uint64_t exec_bytes;
};

/* Never fails: without a usable directory nothing is loaded or stored. */
void unwind_cache_open(struct unwind_cache *c, uint64_t max_bytes);
/* Removes the files that were not used for the longest time, if there are more than max_bytes. */
void unwind_cache_close(struct unwind_cache *c);

struct unwind_cache_key unwind_cache_key(const struct elf_module *m, const struct unwind_source *source);

/* These may be called by several threads at once. False: not there, or not usable; *rows is untouched. */
bool unwind_cache_load(const struct unwind_cache *c, const struct unwind_cache_key *key, struct unwind_rows *rows);
/* Failures are of no importance: the rows are compiled again next time. */
void unwind_cache_store(struct unwind_cache *c, const struct unwind_cache_key *key, const struct unwind_rows *rows);

/* One file, as tests need it: the header, then pc[count], then rule[count]. */
#define UNWIND_CACHE_MAGIC 0x31434e575441454dull /* "MEATWNC1" */
struct unwind_cache_file {
	struct cache_head head;
	uint64_t source_hash;
	uint64_t exec_bytes;
	uint32_t version; /* UNWIND_VERSION */
	uint32_t count;
	uint32_t fdes;
	uint32_t damaged;
};

#endif
