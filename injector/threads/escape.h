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
 * dead does not count: the stack of a thread that has ended, which glibc keeps (ended_stack.h), and the frame that a
 * signal has left on an alternate stack that no thread is on or can come back to.
 *
 * Stacks are full of old numbers. What lies below a stack pointer is dead, but a thread that was there a moment ago may
 * have gone deeper since, and a variable in a register that each function saves at another place is never met where it
 * was. So a word on a stack that its thread owns is dead only as long as the thread is stopped above it: then it is
 * cleared, and not met again (quiesce_clear()). A number in a frame whose function does not use that place is cleared
 * when the function has returned, for which is waited. The stacks are swept until nothing is on them any more; then two
 * searches in a row must find nothing at all, and a third where a word has come to a stack meanwhile.
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
#include "stack_words.h"

struct escape {
	uint64_t start, end; /* code of the trampolines that GOT entries led to; start is the first instruction of one.
	                      * Empty: only hooks are looked for */
	uint64_t guard;      /* pointer guard, if known (has_guard) */
	bool has_guard;
	uint64_t skip_start, skip_end; /* our own memory */
	const struct stack_position *stacks;
	size_t stack_count;
	pid_t pid;           /* of the target: whose stack [stack] is */
	uint32_t tid_offset; /* of glibc (tid_offset.h); 0: no stack counts as that of an ended thread */
	/* quiesce_clear(). NULL: any word on a stack counts. */
	int (*clear)(void *context, struct stack_words *words);
	void *context;
};

#define ESCAPE_BYTES_MAX (1ull << 30) /* of private memory: more is not searched, because it takes too long */
/* Of memattach, for all passes. Code with a sanitizer's checks reads several times slower. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ESCAPE_CPU_NS_MAX 7000000000ull
#else
#define ESCAPE_CPU_NS_MAX 700000000ull
#endif

#define ESCAPE_SWEEPS_NS 500000000ull /* for which words on stacks are cleared, or waited for */

enum escape_verdict {
	ESCAPE_NONE,     /* proven: nobody has a copy */
	ESCAPE_FOUND,    /* at found */
	ESCAPE_HOOK,     /* a hook is alive that no thread runs: its marker is at found */
	ESCAPE_UNPROVEN, /* why says what kept it from being searched */
};

#define ESCAPE_WHY 120u
struct escape_result {
	enum escape_verdict verdict;
	uint64_t found;    /* address of the first word; of a hook, if there is one */
	bool on_new_stack; /* of ESCAPE_FOUND: perhaps on the stack of a thread that was not known: it may be dead */
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
