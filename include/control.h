/* SPDX-License-Identifier: MIT */
/*
 * The contract between memattach and the payload that it has loaded into the target.
 *
 * The payload exports two symbols: memattach_session, a block that tells everything about the session (so that another
 * memattach can finish what a dead one began), and memattach_control(op, argument), which a borrowed thread calls on a
 * stack made for the purpose, all signals blocked. Only one thread calls it at a time. It may make system calls; of the
 * hooks only that of mremap does (payload/map_hook.c). It returns 0 or -errno and, on failure, has undone what it did.
 *
 * The payload writes nothing of the program. Words and code of that change from outside, while all threads stand still
 * (injector/touch/patches/patches.h). What was changed is listed in the payload, by memattach, so that another
 * memattach can undo it; whether a row of the lists is in force the word or the code itself tells.
 */
#pragma once

/*
 * In the frame of each hook that has left its fast path there is, from its first instructions to its last, a word that
 * holds this number exclusive-or its own address. The end of the hook clears it: a return address that an ended hook
 * left in memory that is a part of a later frame tells nothing, this word does.
 */
#define HOOK_LIVE_MAGIC 0x4b4f4f484556494c

#ifndef __ASSEMBLER__
#include <stdint.h>

#include "java_layout.h"
#include "python_layout.h"
#include "trampolines.h"

#define CONTROL_MAGIC 0x4c52544e4f434d4dull /* "MMCONTRL" */
#define CONTROL_VERSION 18u

/*
 * A patched GOT entry of the target. It is listed before it is patched, so one that is GOT_PATCHED may still hold its
 * old value.
 */
enum got_state {
	GOT_EMPTY = 0,
	GOT_PATCHED = 1,  /* holds the address of its trampoline */
	GOT_RESTORED = 2, /* holds old_value again */
	GOT_FOREIGN = 3,  /* somebody else wrote to it meanwhile: left alone */
	GOT_GONE = 4,     /* its module was unloaded, or the page torn out of it: left, unless its trampoline is back */
	GOT_REFUSED = 5,  /* did not hold old_value, or something else is mapped there: left alone */
};

struct got_entry {
	uint64_t address;    /* of the word, multiple of 8 */
	uint64_t old_value;  /* exactly what it held */
	uint32_t trampoline; /* index */
	uint16_t state;      /* enum got_state */
	uint16_t reserved_;
};

/*
 * Some bytes of the target that memattach has replaced, from outside, while all threads were stopped. The list is
 * in the payload so that another memattach can undo it; the payload does not use it. A row is complete before the
 * bytes are written. Whether they are is not noted: the bytes themselves tell.
 */
enum code_patch_kind {
	CODE_JUMP = 0,   /* at the entry of a function, to a detour (below) or an island */
	CODE_ISLAND = 1, /* a jump in padding, which the jump at an entry leads to */
	CODE_WORD = 2,   /* a pointer to a function, in data: it gets another address of that (function_alias.h) */
};
struct code_patch {
	uint64_t address;
	uint8_t bytes;       /* 0: the row is empty */
	uint8_t kind;        /* enum code_patch_kind */
	uint16_t trampoline; /* index; of a word 0 */
	uint32_t reserved_;
	uint8_t old_code[8]; /* `bytes` of each */
	uint8_t new_code[8];
};
#define SESSION_CODE_PATCH_MAX 512u /* two for a trampoline */

/*
 * A mapping of the payload's file, code of its own written over it, within reach of the entries that it serves. For
 * each: what the trampoline's entrance does, and, at DETOUR_COPY, the displaced instructions with a jump back, which
 * are the trampoline's original. With TRAMPOLINE_KEEPS the copy is at DETOUR_KEEPING_COPY, and the original is what
 * stands before it, at DETOUR_KEEPING_RESUME.
 */
struct detour_area {
	uint64_t address;
	uint64_t bytes; /* 0: none. Set before it is mapped: what is there must be looked at */
};
#define SESSION_DETOUR_AREAS 8u

enum control_op {
	CONTROL_START = 1,   /* argument: struct control_start */
	CONTROL_PATCH = 2,   /* argument: struct control_patch */
	CONTROL_STOP = 5,    /* argument: NULL. Of a session that is inert, when no thread is inside: unmaps dump and
	                        tables */
};

/* The kernel keeps other mappings so far below the main stack, or further, so that it can grow (stack_guard_gap). */
#define MAIN_STACK_GAP (1ull << 20)

#define FILTER_NONE 0u /* every free is looked at: where all that is freed was recorded */
#define FILTER_LOG2_MIN 12u
#define FILTER_LOG2_MAX 22u

/* Everything that the payload needs to begin. Descriptors are numbers in the target; the caller closes them. */
struct control_start {
	int32_t dump_fd;
	int32_t tables_fd;
	int32_t payload_fd;
	uint32_t filter_log2;      /* size of the filter for free, FILTER_LOG2_MIN … _MAX, or FILTER_NONE */
	uint64_t dump_max_bytes;   /* address space to reserve for the dump */
	uint64_t tables_max_bytes; /* the same for the tables */
	uint64_t rate_bytes;       /* the least; header.rate_bytes may become larger. 1: every allocation */
	uint64_t seed;             /* never 0 */
	uint64_t main_stack_start; /* the main thread's stack as it is mapped now */
	uint64_t main_stack_end;   /* its upper end, 0 unknown */
	uint64_t main_stack_gap;   /* MAIN_STACK_GAP; 0: something else is mapped so near below it */
	uint64_t dl_handle;        /* what dlopen returned; 0: memattach has mapped the payload by itself */
	uint64_t session_id;
	int32_t injector_pid;
	uint32_t tid_offset;       /* of the kernel tid from the thread pointer (arch/thread_block.h), 0 unknown */
	uint64_t injector_start_ticks;
	uint64_t usable_size;      /* address of the allocator's malloc_usable_size, 0 none */
	struct python_layout python; /* proved; version 0: Python frames are not recorded, or not yet */
	struct java_layout java;     /* proved; bytes 0: walks do not go through Java code */
};

/* Sets trampolines, which words and jumps may lead to from then on. */
struct control_patch {
	uint32_t trampoline_count;       /* trampolines in use from now on, a prefix of the array */
	uint32_t reserved_;
	uint64_t trampolines; /* struct control_trampoline[trampoline_count], address in the target */
};
struct control_trampoline {
	uint64_t original;
	uint32_t hook;             /* enum hook_id */
	uint32_t flags;            /* TRAMPOLINE_OUTER, TRAMPOLINE_QUIET_ALIGNED, TRAMPOLINE_KEEPS */
	uint64_t quiet;            /* 0 none; see below */
};
/*
 * The original may call another hooked function for the same block (realloc of a null pointer calls malloc). Only the
 * outer call counts: each call goes through hook_call_slow(), which remembers that it is inside.
 */
#define TRAMPOLINE_OUTER 1u
/*
 * Where no unwinder knows the payload, no exception may pass its frames. So a hook never calls a function that throws.
 * It calls its quiet one: a function of the same allocator that makes the same block, returns NULL where there is none,
 * and neither throws nor runs a handler of the program. If that returns NULL, the hook leaves its frame and jumps to
 * the original, which finds all as if it had been called directly. With TRAMPOLINE_QUIET_ALIGNED the quiet function
 * takes the alignment first and then the size: the arguments of the original, exchanged.
 */
#define TRAMPOLINE_QUIET_ALIGNED 2u
/*
 * The callers may rely on registers that the function leaves alone (injector/allocators/allocator_registers.c): every
 * register that a called function may change is as the function alone would have left it, whatever the hook does. Only
 * for a function that is hooked at its entry, and not with a quiet one. The original is called as trampolines.h says.
 */
#define TRAMPOLINE_KEEPS 4u

/*
 * The function whose calls SHAPE_COUNT counts. The payload relies on the count as long as eight bytes of it, with its
 * jump, are code, and the pointer by which it is called leads there. memattach writes jump last, once that is so, and
 * sets it to 0 before it changes anything of that.
 */
struct counted_function {
	uint64_t jump;     /* (atomic) address of those bytes, 0: nothing is counted */
	uint64_t code;     /* (atomic) */
	uint64_t pointer;  /* (atomic) address of the pointer, a multiple of 8 */
	uint64_t function; /* (atomic) what it holds */
};

enum session_state {
	SESSION_LOADED = 0,    /* dlopen done, nothing started */
	SESSION_STARTED = 1,   /* memory mapped, recording may be on */
	/*
	 * Set by memattach, last, when no new thread can enter a hook: the switch is 0, counted_function.jump too, all
	 * trampolines lead to their originals, and no thread owns the near thread state.
	 */
	SESSION_INERT = 2,
	SESSION_STOPPED = 3,   /* dump and tables unmapped */
};

#define SESSION_ENTRY_MAX 32768u

struct memattach_session {
	uint64_t magic;            /* CONTROL_MAGIC */
	uint32_t version;          /* CONTROL_VERSION */
	uint32_t state;            /* enum session_state */
	uint64_t session_id;
	uint64_t dl_handle;
	uint64_t dump_address;
	uint64_t dump_bytes;
	uint64_t tables_address;
	uint64_t tables_bytes;
	uint64_t trampolines_address;
	uint64_t trampolines_bytes;
	uint64_t trampoline_code_offset; /* of their code in the payload's file, multiple of 4096 */
	uint32_t trampoline_count;
	uint32_t entry_count;     /* written by memattach, as are the entries, which come first */
	uint64_t entries_address; /* struct got_entry[SESSION_ENTRY_MAX] */
	uint64_t switch_address;  /* uint32_t (atomic): 1 while recording; wiped in forked children */
	int32_t injector_pid;
	uint32_t reserved_;
	uint64_t injector_start_ticks;
	uint64_t new_code;         /* (atomic) an address that no module of the index covers: memattach should look */
	uint64_t text_start;       /* the payload's own code, for the proof that no thread is in it */
	uint64_t text_end;
	uint64_t code_patches_address; /* struct code_patch[SESSION_CODE_PATCH_MAX], written by memattach */
	/* Where memattach writes a layout of Python that it could prove only after the start: all of it, and then 1. */
	uint64_t python_address;       /* struct python_layout */
	uint64_t has_python_address;   /* uint32_t (atomic) */
	uint64_t counted_function_address; /* struct counted_function */
	/* The same of Java: all of it without `bytes`, and then these. */
	uint64_t java_address;         /* struct java_layout */
	struct detour_area detours[SESSION_DETOUR_AREAS]; /* written by memattach */
};

#ifdef MEMATTACH_PAYLOAD
extern struct memattach_session memattach_session __attribute__((visibility("default")));
int64_t memattach_control(uint64_t op, void *argument) __attribute__((visibility("default")));
#endif

_Static_assert(sizeof(struct got_entry) == 24, "entry");
_Static_assert(sizeof(struct control_start) == 736, "control_start");
_Static_assert(sizeof(struct control_trampoline) == 24, "control_trampoline");
_Static_assert(sizeof(struct code_patch) == 32, "code_patch");
_Static_assert(sizeof(struct control_patch) == 16, "control_patch");

#endif
