/* SPDX-License-Identifier: MIT */
/*
 * The contract between memattach and the payload that it has loaded into the target.
 *
 * The payload exports two symbols: memattach_session, a block that tells everything about the session (so that another
 * memattach can finish what a dead one began), and memattach_control(op, argument), which a borrowed thread calls on a
 * stack made for the purpose, all signals blocked. Only one thread calls it at a time. It may make system calls; the
 * hooks never do. It returns 0 or -errno and, on failure, has undone what it did.
 *
 * GOT entries belong to modules, which another thread may unload or set up at any time. So PATCH and RESTORE are
 * "locked": they run while the loader's lock is held. glibc resolves an IFUNC symbol under that lock; memattach_locked
 * is one whose resolver runs the operation that session.locked_op asks for when memattach has the thread call
 * dlsym(handle, "memattach_locked"). musl has no such lock and unloads nothing, and a static program has no loader:
 * there memattach_control is called directly, in a payload that memattach has mapped by itself
 * (injector/session/load.h).
 *
 * What is mapped at a GOT entry, and with which protection, is also certain only under that lock. So the operation asks
 * memattach:
 *
 *   1. It makes the system call getpid with CONTROL_CHECKPOINT as first argument, at which memattach stops it. With a
 *      channel it sends the lowest byte of CONTROL_CHECKPOINT instead, and waits for one byte.
 *   2. memattach writes page_protection of each GOT entry, and sets session.protections_known.
 *   3. The operation goes on. Without an answer (memattach has died) it patches and restores nothing.
 *
 * page_protection is GOT_ABSENT where the word must not be touched: where its page is no private memory that can be
 * read (a program may unmap or replace a part of a library by itself), or, for PATCH, is not mapped as it was when the
 * GOT entry was planned.
 */
#ifndef MEMATTACH_CONTROL_H
#define MEMATTACH_CONTROL_H

/*
 * In the frame of each hook that has left its fast path there is, from its first instructions to its last, a word that
 * holds this number exclusive-or its own address. The end of the hook clears it: a return address that an ended hook
 * left in memory that is a part of a later frame tells nothing, this word does.
 */
#define HOOK_LIVE_MAGIC 0x4b4f4f484556494c

#ifndef __ASSEMBLER__
#include <stdint.h>

#include "python_layout.h"
#include "trampolines.h"

#define CONTROL_MAGIC 0x4c52544e4f434d4dull /* "MMCONTRL" */
#define CONTROL_VERSION 12u

#define CONTROL_CHECKPOINT 0x4d415403

/* A patched word of the target. */
enum got_state {
	GOT_EMPTY = 0,
	GOT_PATCHED = 1,  /* holds the address of its trampoline */
	GOT_RESTORED = 2, /* holds old_value again */
	GOT_FOREIGN = 3,  /* somebody else wrote to it meanwhile: left alone */
	GOT_GONE = 4,     /* its module was unloaded, or the page torn out of it: left, unless its trampoline is back */
	GOT_REFUSED = 5,  /* did not hold expected_value, or its page could not be made writable */
};
#define GOT_ABSENT UINT64_MAX /* page_protection: what was mapped there is not there any more */
#define GOT_ESCAPES 1u /* flags: the value may have been copied: not only called through */
#define GOT_COUNTS 2u  /* … leads to SHAPE_COUNT: the payload relies on the count as long as the word is patched */
#define GOT_PYTHON 4u  /* … it is a word of CPython, no GOT entry, and counted apart (patched_words.h) */

struct got_entry {
	uint64_t address;    /* of the word, multiple of 8 */
	uint64_t old_value;  /* exactly what it held */
	uint32_t trampoline; /* index */
	uint16_t state;      /* enum got_state */
	uint16_t flags;
	uint64_t page_protection; /* PROT_* that its page has and must have again, or GOT_ABSENT */
};

/*
 * Some bytes of the target's code that memattach has replaced by a jump to a detour (below), from outside, while all
 * threads were stopped. The list is in the payload so that another memattach can undo it; the payload does not use it.
 * A row is complete before the bytes are written. Whether they are is not noted: the code itself tells.
 */
struct code_patch {
	uint64_t address;
	uint8_t bytes;       /* 0: the row is empty */
	uint8_t island;      /* 1: a jump in padding, which the jump at an entry leads to */
	uint16_t trampoline; /* index */
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
#define DETOUR_BYTES 128u
#define DETOUR_COPY 40u
#define DETOUR_KEEPING_RESUME 48u
#define DETOUR_KEEPING_COPY 58u

enum control_op {
	CONTROL_START = 1,   /* argument: struct control_start */
	CONTROL_PATCH = 2,   /* argument: struct control_patch. Locked. -EINTR: nobody told the protections */
	CONTROL_RESTORE = 3, /* puts all old values back; the states say which. argument: int32_t *, the channel as in
	                        control_patch, or NULL. Locked, -EINTR as above */
	CONTROL_INERT = 4,   /* argument: NULL. Switch off, all trampolines inert: no new thread can enter a hook */
	CONTROL_STOP = 5,    /* argument: NULL. After INERT, when no thread is inside: unmaps dump and tables */
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
	uint32_t tid_offset;       /* of the kernel tid after the thread pointer, 0 unknown */
	uint64_t injector_start_ticks;
	uint64_t usable_size;      /* address of the allocator's malloc_usable_size, 0 none */
	uint64_t ask_protections;  /* 1: PATCH and RESTORE ask memattach; 0: page_protection is set already (tests) */
	struct python_layout python; /* proved; version 0: Python frames are not recorded, or not yet */
};

/* Set the trampolines and patch GOT entries, which are appended to session.entries; each has a state. */
struct control_patch {
	uint32_t trampoline_count;       /* trampolines in use from now on, a prefix of the array */
	uint32_t entry_count;
	uint64_t trampolines; /* struct control_trampoline[trampoline_count], address in the target */
	uint64_t entries;     /* struct got_entry[entry_count]; must hold old_value; states are written back */
	int32_t channel;      /* descriptor of a socket whose other end memattach holds, -1 none */
	uint32_t reserved_;
};
struct control_trampoline {
	uint64_t original;
	uint32_t hook;             /* enum hook_id */
	uint32_t flags;            /* TRAMPOLINE_OUTER, TRAMPOLINE_QUIET_ALIGNED, TRAMPOLINE_KEEPS */
	uint64_t quiet;            /* 0 none; see below */
};
/*
 * The original may call another hooked function for the same block (realloc of a null pointer calls malloc). Only the
 * outer call counts: each call goes through hook_slow(), which remembers that it is inside.
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
 * The callers may rely on registers that the function leaves alone (injector/entry/allocator_registers.c): every
 * register that a called function may change is as the function alone would have left it, whatever the hook does. Only
 * for a function that is hooked at its entry, and not with a quiet one. The original is called as trampolines.h says.
 */
#define TRAMPOLINE_KEEPS 4u

enum session_state {
	SESSION_LOADED = 0,    /* dlopen done, nothing started */
	SESSION_STARTED = 1,   /* memory mapped, recording may be on */
	SESSION_INERT = 2,     /* switched off */
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
	uint32_t entry_count;     /* (atomic) */
	uint64_t entries_address; /* struct got_entry[SESSION_ENTRY_MAX] */
	uint64_t switch_address;  /* uint32_t (atomic): 1 while recording; wiped in forked children */
	int32_t injector_pid;
	uint32_t reserved_;
	uint64_t injector_start_ticks;
	uint64_t new_code;         /* (atomic) an address that no module of the index covers: memattach should look */
	uint64_t ask_protections;  /* as in control_start */
	uint64_t locked_op;        /* enum control_op, 0 none; argument and result of what memattach_locked does */
	uint64_t locked_argument;
	int64_t locked_result;
	uint64_t protections_known;/* (atomic) set by memattach at the checkpoint */
	uint64_t text_start;       /* the payload's own code, for the proof that no thread is in it */
	uint64_t text_end;
	uint64_t code_patches_address; /* struct code_patch[SESSION_CODE_PATCH_MAX], written by memattach */
	/* Where memattach writes a layout of Python that it could prove only after the start: all of it, and then 1. */
	uint64_t python_address;       /* struct python_layout */
	uint64_t has_python_address;   /* uint32_t (atomic) */
	struct detour_area detours[SESSION_DETOUR_AREAS]; /* written by memattach */
};

#ifdef MEMATTACH_PAYLOAD
extern struct memattach_session memattach_session __attribute__((visibility("default")));
int64_t memattach_control(uint64_t op, void *argument) __attribute__((visibility("default")));
/* Never called: looking it up is what matters. */
void memattach_locked(void) __attribute__((visibility("default")));
#endif

_Static_assert(sizeof(struct got_entry) == 32, "entry");
_Static_assert(sizeof(struct control_start) == 328, "control_start");
_Static_assert(sizeof(struct control_trampoline) == 24, "control_trampoline");
_Static_assert(sizeof(struct code_patch) == 32, "code_patch");
_Static_assert(sizeof(struct control_patch) == 32, "control_patch");

#endif

#endif
