/* SPDX-License-Identifier: MIT */
/*
 * Symbols of images, kept between reports (common/base/cache_dir.h): one file for each build-id (symbol_file.h). Most
 * of a short report is the decompression and reading of debug files, which the next report of the same places saves.
 *
 * An answer is believed as long as nothing that it came from has changed: the program file, its debug file or that
 * there is none, the file that several debug files share, memanalyze itself, and the version of libdw. Of files that is
 * the inode, the size and the times of modification and change. So a debug file that is installed or removed is seen at
 * once.
 */
#ifndef MEMATTACH_SYMBOL_CACHE_H
#define MEMATTACH_SYMBOL_CACHE_H

#include "cache_dir.h"
#include "image_file.h"
#include "symbol_file.h"

/* Of all files; one takes a quarter at most. */
#define SYMBOL_CACHE_MAX_BYTES (64ull << 20)

struct symbol_cache {
	struct cache_dir files;
	uint64_t program; /* the identity of memanalyze and libdw; 0: unknown, there is no cache */
};

/* Never fails: without a usable directory nothing is loaded or stored. */
void symbol_cache_open(struct symbol_cache *c, uint64_t max_bytes);
/* Removes the files that were not used for the longest time, if there are more than max_bytes. */
void symbol_cache_close(struct symbol_cache *c);

/* Whether anything of this image may be there, or kept. */
bool symbol_cache_wants(const struct symbol_cache *c, const struct image *image);
/* What earlier reports have found in this very file, which is settled, sound and to be freed; NULL: nothing. */
struct symbol_file *symbol_cache_load(const struct symbol_cache *c, const struct image *image,
                                      const struct image_found *file);
/* f is from symbol_file_build. Failures are of no importance. */
void symbol_cache_store(struct symbol_cache *c, const struct image *image, const struct image_found *file,
                        struct symbol_file *f, size_t bytes);
/* The largest file that is stored. */
size_t symbol_cache_file_max(const struct symbol_cache *c);

#endif
