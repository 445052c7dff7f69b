/* SPDX-License-Identifier: MIT */
/*
 * Compiled unwind rows, kept between sessions: one file for each build-id in $XDG_CACHE_HOME/memattach, else
 * ~/.cache/memattach. Rows are a pure function of the call frame information and the extent of the code, so a file
 * also holds a hash of these: a module that merely claims a known build-id finds nothing, and replaces the file.
 *
 * Nothing in the directory is trusted further than that. It must belong to the effective user and be writable by
 * nobody else (so root with the HOME of somebody else has no cache), a file is read whole, checked by hash, size and
 * order of its rows, and is passed over when anything is wrong. A file appears complete, by rename. The hash is not a
 * cryptographic one: who can write here is the user himself, and wrong rows make wrong stacks, no more, because
 * the payload checks every read.
 */
#ifndef MEMATTACH_UNWIND_CACHE_H
#define MEMATTACH_UNWIND_CACHE_H

#include <stdatomic.h>

#include "unwind_compile.h"

#define UNWIND_CACHE_MAX_BYTES (256ull << 20)

struct unwind_cache {
	int dir; /* -1: there is none */
	uint64_t max_bytes;
	atomic_bool stored; /* relaxed: read when all threads are joined */
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
	uint64_t magic;
	uint64_t checksum; /* unwind_cache_hash of all that follows */
	uint64_t source_hash;
	uint64_t exec_bytes;
	uint32_t version; /* UNWIND_VERSION */
	uint32_t count;
	uint32_t fdes;
	uint32_t damaged;
};
uint64_t unwind_cache_hash(const void *data, size_t bytes, uint64_t seed);

#endif
