/* SPDX-License-Identifier: MIT */
/*
 * Memory from which pointers lead to blocks: all that is there and is no block itself. Pages of files that nobody has
 * written to hold none, shared memory may. Code that was generated may have them at any byte.
 *
 * Stacks are left for the moment in which all threads stand still: what is below their stack pointers was left behind
 * by functions that have returned, and would keep blocks that nothing points to.
 */
#pragma once

#include "census/reach/reach.h"

/* May pages of a mapping hold pointers? private: those of its own, which are in no file. */
bool reach_root_may_hold(const struct mapping *m, bool private);
/*
 * Bytes of shared memory in which there may be pointers that are not looked at: another process has written there, and
 * this one has not touched it since it has mapped it, or was forked. At least; where the memory behind a mapping is not
 * told (/proc/PID/map_files wants CAP_CHECKPOINT_RESTORE) all that is not there counts.
 */
uint64_t reach_roots_unseen_shared(const struct maps *maps, const struct resident_pages *pages, pid_t pid);
/* Has it huge pages of hugetlbfs, whose words are not looked at? */
bool reach_roots_have_huge_pages(const struct maps *maps);
/* How many bytes words may be apart in it. */
unsigned reach_root_every(const struct mapping *m);
/* May it be the stack of a thread, with a guard below? */
bool reach_root_may_be_stack(const struct maps *maps, const struct mapping *m);

/*
 * Reaches blocks from all of it, and from them all others, while the process runs: first from variables of modules,
 * then from other memory and those of the C library, at last from stacks, if it is not stopped later.
 */
void reach_look(struct reach *r, const struct mapping *libc, bool with_stacks);
/* From stacks alone, after that. */
void reach_look_at_stacks(struct reach *r);
/* Blocks with mappings of their own as if something led to them: what looks like one may be other memory,
 * which is not led to by a pointer into it. */
void reach_mapped_blocks(struct reach *r);
