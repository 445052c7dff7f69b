/* SPDX-License-Identifier: MIT */
/*
 * The locks of glibc's loader: _dl_load_lock, which is held by dlopen, dlclose, dlsym and their constructors, and
 * _dl_load_write_lock, which is held by dl_iterate_phdr. They are no symbols, but stand one behind the other in
 * _rtld_global, which is one, behind the number of namespaces: two recursive mutexes, known by their kind.
 */
#pragma once

#include "elf/modules.h"

/* Where the first of the two is; 0: they are not found. */
uint64_t loader_locks_find(const struct modules *m, const struct target_memory *memory);
/* With all threads but one stopped, and that one not in the loader: does nobody hold them? */
bool loader_locks_are_free(uint64_t locks, const struct target_memory *memory);
