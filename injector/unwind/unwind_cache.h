/* SPDX-License-Identifier: MIT */
/*
 * Compiled unwind rows, kept between sessions (cache_dir.h). Rows are a pure function of the call frame information, of
 * the code (switch_rows.h), and of where a function is that ends stacks (stack_base.h); so a file is named by the
 * SHA-256 of all three. A module that claims to be another one finds nothing of that one, and leaves nothing for it.
 *
 * What is compiled comes from a child that reads what the target has written, and that the target could take over. So
 * the cache is for targets that could do to this user's processes whatever they like anyway (unwind_cache_is_for).
 *
 * Size and order of the rows of a file are checked, and it is passed over when anything is wrong.
 */
#pragma once

#include "unwind/cache_dir.h"
#include "unwind/unwind_compile.h"

#define UNWIND_CACHE_MAX_BYTES (256ull << 20)

struct unwind_cache {
	struct cache_dir files;
};

/*
 * A process of the effective user of memattach alone, in the same user and mount namespaces: not one that has another
 * user among its real, effective and saved ones, nor a container, even if its root counts as this one. False also where
 * that cannot be told.
 */
bool unwind_cache_is_for(pid_t target);

/* Never fails: without a usable directory nothing is loaded or stored. */
void unwind_cache_open(struct unwind_cache *c, uint64_t max_bytes);
/* Removes the files that were not used for the longest time, if there are more than max_bytes. */
void unwind_cache_close(struct unwind_cache *c);

/* The key of the rows of that source in a module. False: something cannot be read, or the budget of the file's memory
 * does not allow it: nothing is to be loaded or stored. */
bool unwind_cache_key(struct cache_key *key, const struct module_file *f, const struct unwind_source *source);

/* These may be called by several threads at once. False: not there, or not usable; *rows is untouched. exec_bytes: of
 * the code that the rows are for. */
bool unwind_cache_load(const struct unwind_cache *c, const struct cache_key *key, uint64_t exec_bytes,
                       struct unwind_rows *rows);
/* Failures are of no importance: the rows are compiled again next time. */
void unwind_cache_store(struct unwind_cache *c, const struct cache_key *key, const struct unwind_rows *rows);

/* One file, as tests need it: the header, then pc[count], then rule[count]. */
#define UNWIND_CACHE_MAGIC 0x32434e575441454dull /* "MEATWNC2" */
struct unwind_cache_file {
	struct cache_head head;
	uint32_t count;
	uint32_t fdes;
	uint32_t damaged;
	uint32_t none_; /* no padding */
};
