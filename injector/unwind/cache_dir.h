/* SPDX-License-Identifier: MIT */
/*
 * What one run works out and the next can use again: files in $XDG_CACHE_HOME/memattach, else ~/.cache/memattach. The
 * name of a file is a cryptographic hash of everything that its contents depend on, so that nobody can make what is
 * found for one thing out of another. Each use has a suffix and a limit of its own.
 *
 * The directory must belong to the effective user and be writable by nobody else (so root with the HOME of somebody
 * else has no cache). A file is read whole, and passed over when its checksum is wrong; what is in it is to be checked
 * by its user all the same. A file appears complete, by rename: of two writers the last one wins. All of this happens
 * silently, and failures are of no importance: what is not found is worked out again.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cache_dir {
	int dir;            /* -1: there is none */
	const char *suffix; /* ".unwind" */
	uint64_t max_bytes; /* of all files with this suffix */
	atomic_bool stored; /* relaxed: read when all threads are joined */
};

#define CACHE_DIGEST_BYTES 32u /* SHA-256 */

/* What a file is for. */
struct cache_key {
	uint8_t digest[CACHE_DIGEST_BYTES];
};

/* Each file begins with this. */
struct cache_head {
	uint64_t magic;
	uint8_t checksum[CACHE_DIGEST_BYTES]; /* of all that follows */
};

/* Never fails: without a usable directory nothing is loaded or stored. The suffix must outlive it. */
void cache_dir_open(struct cache_dir *c, const char *suffix, uint64_t max_bytes);
/* Removes the files that were not used for the longest time, if there are more than max_bytes. */
void cache_dir_close(struct cache_dir *c);

/* These may be called by several threads at once, for different keys. */

/* A file of at least min_bytes, which count the head, to be freed; NULL: it is not there or damaged. */
void *cache_dir_load(const struct cache_dir *c, const struct cache_key *key, uint64_t magic, size_t min_bytes,
                     size_t *bytes);
/* The largest file that is stored: one that pushes out most of the others is not worth it. */
size_t cache_dir_file_max(const struct cache_dir *c);
/* Fills in the head. */
void cache_dir_store(struct cache_dir *c, const struct cache_key *key, uint64_t magic, struct cache_head *file,
                     size_t bytes);

/* For tests: the checksum of a file of so many bytes. */
void cache_dir_checksum(const struct cache_head *file, size_t bytes, uint8_t checksum[CACHE_DIGEST_BYTES]);
