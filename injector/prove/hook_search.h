/* SPDX-License-Identifier: MIT */
/*
 * Is a coroutine parked in a hook? The original may switch stacks: operator new may, in a new_handler, or an allocator
 * with locks for coroutines. No thread shows that, so the memory that the target has written is searched for the
 * liveness markers of hooks (HOOK_LIVE_MAGIC). A hook that is alive keeps its marker where it is, and none becomes
 * alive any more.
 *
 * An exception may have left a marker. So it counts neither on the stack of a thread that was walked to where it began,
 * nor on that of one that has ended, which glibc keeps (ended_stack.h).
 *
 * The search is bounded, whatever the size of the target. Memory that is only reserved costs nothing (page_scan.h). A
 * page that was swapped out would be brought back by reading it, so it is not read; and what is there may be more than
 * can be read in the time that a detach may take. In both cases nothing is found.
 */
#pragma once

#include "search/page_scan.h"
#include "process/target.h"
#include "process/target_read.h"
#include "prove/thread_stack.h"

struct hook_search {
	const struct stack_position *stacks;
	size_t stack_count;
	uint32_t tid_offset; /* of glibc (tid_offset.h); 0: no stack counts as that of an ended thread */
};

#define HOOK_SEARCH_BYTES_MAX (1ull << 30) /* of private memory: more is not searched, because it takes too long */
/* Of memattach. Code with a sanitizer's checks reads several times slower. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HOOK_SEARCH_CPU_NS_MAX 7000000000ull
#else
#define HOOK_SEARCH_CPU_NS_MAX 700000000ull
#endif

/*
 * *found: address of the marker, 0 none. Memory that cannot be read is passed over: it is being unmapped. pages: of the
 * target, just opened. -EINTR: memattach was asked twice to end.
 */
int hook_search(const struct hook_search *x, const struct target *t, const struct target_memory *memory,
                struct page_scan *pages, uint64_t *found, struct err *e) WARN_UNUSED;

/* Is the hook alive whose marker was found there? */
bool hook_search_lives(const struct target_memory *memory, uint64_t found);
