/* SPDX-License-Identifier: MIT */
/*
 * The table of changes: all that memattach does to a target, and who undoes it.
 *
 * Each kind of change is a row of CHANGE_LIST. Nothing is written to a target but by target_writer_change() and
 * target_writer_undo(), which take a row of struct changes with the old and the new bytes, and by target_write() into
 * memory of our own, which must be in force in the table (target_write.h). Only files below touch/ may call these, set
 * registers, or use ptrace at all (check_touch). Attach appends to the table, detach walks the rows of each kind
 * backwards (those of GOT entries forwards: word_patches.c) and marks them; the receipt has the sums, and what is
 * neither undone nor gone is residue. memattach --doctor --verbose prints the kinds.
 *
 * The table is of this process and dies with it. What must be undone then is told by the last column, from what is in
 * the target: the lists of the payload (include/control.h), the data of the stub (arch/stub.h), the mappings' names.
 *
 * Not in it: a call that would return EINTR for a mere stop is made to begin again by the kernel (tracee.c).
 *
 * The order in which changes are made and undone, so that each single one may be the last: remote.h for a borrowed
 * thread, patches.h for the program's code and words, entry_hold.h for a program that is started.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum change_class {
	CHANGE_OF_THREAD, /* of a borrowed thread: undone when it is back */
	CHANGE_OF_MEMORY, /* memory that is ours as long as it is in force */
	CHANGE_OF_BYTES,  /* at most CHANGE_BYTES, each with a row of its own */
};

/* When it is undone (CHANGE_UNDONE_…), and how if memattach is dead (CHANGE_DEAD_…). */
#define CHANGE_UNDONE_BACK "when the thread is back"
#define CHANGE_UNDONE_STUB "by the stub"
#define CHANGE_UNDONE_EXIT "at its exit"
#define CHANGE_UNDONE_CALLS "after the calls"
#define CHANGE_UNDONE_DLCLOSE "by dlclose"
#define CHANGE_UNDONE_STILL "at the detach, while all threads are stopped"
#define CHANGE_UNDONE_IDLE "at the detach, when nobody is inside"
#define CHANGE_UNDONE_RELEASE "at the release"
#define CHANGE_UNDONE_READ "as soon as it was read"
#define CHANGE_DEAD_STUB "by the stub"
#define CHANGE_DEAD_NEXT "by the next attach, or --detach"
#define CHANGE_DEAD_GUARDIAN "it ends by itself, its guardian has it collected; or the next attach, or --detach"
#define CHANGE_DEAD_ENDS "that call ends as the other one"
#define CHANGE_DEAD_LOST "not: it is lost"
#define CHANGE_DEAD_UNUSED "not: nothing leads there"
#define CHANGE_DEAD_PASSED "not: the program has gone on from there"

/* clang-format off */
/*        kind         class   what                                                     undone   dead */
#define CHANGE_LIST(X)                                                                                         \
	X(REGISTERS,   THREAD, "registers of a borrowed thread",                        BACK,    STUB)         \
	X(SIGNAL_MASK, THREAD, "signal mask of a borrowed thread",                      BACK,    STUB)         \
	X(ERRNO,       THREAD, "errno of a borrowed thread",                            STUB,    STUB)         \
	X(SYSTEM_CALL, THREAD, "a system call of dlopen, made another one",             EXIT,    ENDS)         \
	X(DESCRIPTORS, THREAD, "descriptors",                                           STUB,    STUB)         \
	X(WORK_AREA,   THREAD, "a mapping in which a borrowed thread works",            STUB,    STUB)         \
	X(PADDING,     MEMORY, "unused padding: the stub",                              BACK,    NEXT)         \
	X(ERROR_TEXT,  BYTES,  "what dlerror() would tell a borrowed thread",           CALLS,   LOST)         \
	X(PAYLOAD,     MEMORY, "the payload, and its lists",                            IDLE,    NEXT)         \
	X(LINK_NAME,   BYTES,  "the payload's name in the list of the loader",          DLCLOSE, NEXT)         \
	X(RECORDING,   MEMORY, "the dump, the unwind tables, the trampolines",          IDLE,    NEXT)         \
	X(DETOURS,     MEMORY, "detours",                                               IDLE,    NEXT)         \
	X(ISLAND,      BYTES,  "a jump in padding, near a function that is hooked",     IDLE,    NEXT)         \
	X(JUMP,        BYTES,  "a jump at the entry of a function",                     STILL,   NEXT)         \
	X(CODE_PAGES,  MEMORY, "pages of code with jumps, a mapping of their own",      IDLE,    NEXT)         \
	X(PYTHON_WORD, BYTES,  "a word of CPython",                                     STILL,   NEXT)         \
	X(GOT_ENTRY,   BYTES,  "a GOT entry",                                           STILL,   NEXT)         \
	X(CLONE,       MEMORY, "a clone of the process, for a census",                  READ,    GUARDIAN)     \
	X(HOLD_CODE,   MEMORY, "padding of a program that is started: code that waits", RELEASE, UNUSED)       \
	X(HOLD_LEAD,   BYTES,  "where a program that is started is led to that code",   RELEASE, PASSED)
/* clang-format on */

#define CHANGE_KIND(kind, class, what, undone, dead) CHANGE_##kind,
enum change_kind { CHANGE_LIST(CHANGE_KIND) CHANGE_KINDS };
#undef CHANGE_KIND

enum change_state {
	CHANGE_LISTED, /* not made yet, or never */
	CHANGE_MADE,
	CHANGE_UNDONE,
	CHANGE_GONE,  /* with its library or its process: there is nothing to undo */
	CHANGE_STAYS, /* somebody else has changed it since, or it could not be undone: said in residue or notes */
	CHANGE_STATES
};

#define CHANGE_BYTES 8u

struct change {
	uint64_t address;
	uint8_t old[CHANGE_BYTES], new[CHANGE_BYTES];
	uint8_t bytes;
	uint8_t kind;  /* enum change_kind */
	uint8_t state; /* enum change_state */
};

/* All zeros: empty. */
struct changes {
	struct change *list; /* of bytes, in the order in which they were added */
	size_t count;
	uint32_t sums[CHANGE_KINDS][CHANGE_STATES]; /* of those that are in this state, with and without a row */
};

void changes_free(struct changes *c);
/* The static columns of the table. */
const char *change_what(enum change_kind kind);
const char *change_undone(enum change_kind kind);
const char *change_dead(enum change_kind kind);
enum change_class change_class(enum change_kind kind);

/* A row of CHANGE_OF_BYTES, CHANGE_LISTED; its number, or -ENOMEM. Numbers are good until changes_forget(). */
int changes_add(struct changes *c, enum change_kind kind, uint64_t address, const void *old, const void *new,
                unsigned bytes, struct err *e) WARN_UNUSED;
/* Drops all rows but the first so many: those that were added last are none after all. */
void changes_keep(struct changes *c, size_t count);
void changes_set(struct changes *c, int row, enum change_state state);
/* The next row of the kind after `row`, or before it; begin with -1. -1: there is none. */
int changes_next(const struct changes *c, enum change_kind kind, int row);
int changes_before(const struct changes *c, enum change_kind kind, int row);

/* Without a row: one more is made; all that are made get another state. */
void changes_made(struct changes *c, enum change_kind kind);
void changes_end(struct changes *c, enum change_kind kind, enum change_state state);
/* All of a borrowed thread is as it was. */
void changes_thread_is_back(struct changes *c);
/* The process has ended, or has executed another program. */
void changes_all_gone(struct changes *c);
/* A session of another memattach was taken out, and one of our own begins: only what is made stays in the table. */
void changes_forget(struct changes *c);
