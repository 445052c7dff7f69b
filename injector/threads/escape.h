/* SPDX-License-Identifier: MIT */
/*
 * Did the address of a trampoline escape? A program may have copied a function pointer out of a patched word (a plugin
 * that keeps malloc in a struct) while it was profiled. Unmapping the trampoline would then crash it later.
 *
 * Most GOT entries cannot leak: all code that refers to them calls or jumps through them (GOT_ESCAPES is not set);
 * where that is so for all, nothing is searched. Where at least one can, the memory that the target has written is
 * searched for words that hold an address of the trampolines, plain or as glibc mangles pointers in jmp_buf and exit
 * handlers (rotated and xored with a guard, rol(p ^ guard, 17)). The search runs beside the living target, so it is
 * made twice: a copy that moves from a place not yet read to one read already would have to do so twice in a row. A hit
 * that is nothing but an old number keeps the trampolines too: the error is on the safe side. Only what is provably
 * dead does not count: a stack below its stack pointer (thread_stack.h), the stack of a thread that has ended, which
 * glibc keeps (ended_stack.h), and the frame that a signal has left on an alternate stack that no thread is on or can
 * come back to.
 *
 * A frame is alive as long as its function runs, and has in it what earlier frames left at places that the function
 * does not use: the address of a trampoline in one need be no copy. So for a word on the stack of a thread that was
 * walked it is waited, for a moment, until that thread is seen with its stack pointer above it.
 *
 * A coroutine may be parked in a hook, if the original switches stacks: operator new may, in a new_handler, or an
 * allocator with locks for coroutines. No thread shows that, so the search looks for the liveness markers of hooks, too
 * (HOOK_LIVE_MAGIC), but for stacks that were walked: there an exception may have left one. A hook that is alive keeps
 * its marker where it is, and none becomes alive any more.
 *
 * The search is bounded, whatever the size of the target. Memory that is only reserved costs nothing (page_scan.h). A
 * page that was swapped out may hold a copy, but to read it would bring it back, so it is not read; and what is there
 * may be more than can be read in the time that a detach may take. In both cases nothing is proven, and the trampolines
 * have to stay. What is known beforehand (too much memory, anything in swap) ends the search before it begins.
 */
#ifndef MEMATTACH_ESCAPE_H
#define MEMATTACH_ESCAPE_H

#include "page_scan.h"
#include "target.h"
#include "target_memory.h"
#include "thread_stack.h"

struct escape {
	uint64_t start, end; /* code of the trampolines that GOT entries led to; start is the first instruction of one.
	                      * Empty: only hooks are looked for */
	uint64_t guard;      /* pointer guard, if known (has_guard) */
	bool has_guard;
	uint64_t skip_start, skip_end; /* our own memory */
	const struct stack_position *stacks;
	size_t stack_count;
	uint32_t tid_offset; /* of glibc (tid_offset.h); 0: no stack counts as that of an ended thread */
	/* Where is the stack of one of these threads now? False: that cannot be told, or it holds the address of a
	 * trampoline in a register. NULL: no frame is waited for. */
	bool (*look)(void *context, pid_t tid, struct stack_position *now);
	void *context;
};

#define ESCAPE_BYTES_MAX (1ull << 30) /* of private memory: more is not searched, because it takes too long */
/* Of memattach, for all passes. Code with a sanitizer's checks reads several times slower. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ESCAPE_CPU_NS_MAX 7000000000ull
#else
#define ESCAPE_CPU_NS_MAX 700000000ull
#endif

#define ESCAPE_FRAMES_NS 200000000ull /* for which frames are waited for in a search */

enum escape_verdict {
	ESCAPE_NONE,     /* proven: nobody has a copy */
	ESCAPE_FOUND,    /* at found */
	ESCAPE_HOOK,     /* a hook is alive that no thread runs: its marker is at found */
	ESCAPE_UNPROVEN, /* why says what kept it from being searched */
};

#define ESCAPE_WHY 120u
struct escape_result {
	enum escape_verdict verdict;
	uint64_t found; /* address of the first word; of a hook, if there is one */
	char why[ESCAPE_WHY];
};

/* Whether a search would prove nothing, if it were made now, as is known without one. */
bool escape_is_unprovable(const struct target *t, char why[ESCAPE_WHY]);

/* Is the hook alive whose marker was found there? */
bool escape_hook_lives(const struct target_memory *memory, uint64_t found);

/*
 * Memory that cannot be read is passed over: it is being unmapped. pages: of the target, just opened. -EINTR: memattach
 * was asked twice to end.
 */
int escape_search(const struct escape *x, const struct target *t, const struct target_memory *memory,
                  struct page_scan *pages, struct escape_result *result, struct err *e) WARN_UNUSED;

#endif
