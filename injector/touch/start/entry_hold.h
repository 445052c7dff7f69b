/* SPDX-License-Identifier: MIT */
/*
 * Holds a program that memattach has started where its own code begins, so that it can be attached to before it
 * allocates anything.
 *
 * Where: a program with a loader at its entry point, when all libraries are loaded and relocated and their constructors
 * have run, so dlopen() works as at any later time; constructors of the program itself are still to come. What
 * constructors of libraries allocate is from before the attach. A static program at its main, because its C library is
 * of no use before (no thread pointer, no relocations); its constructors have run.
 *
 * How: no breakpoint. One kills, in whatever way it is set, a program whose tracer has died, and memattach may be
 * killed at any moment. Instead the program goes through code (hold_stub.S) in the padding behind its own: that
 * sleeps for half a millisecond, over and over, as long as memattach is its parent and has not said "go", and then
 * jumps to where the program would have been. It is led there
 *
 *   - by AT_ENTRY on its stack, which the loader reads and jumps to; it is put back while the program waits;
 *   - in a static program by the address of main, which a few bytes of its start code make
 *     (start_code.h); they are put back while the program waits. Nothing is executed step by step: a step that has no
 *     tracer any more would end the program by SIGTRAP.
 *
 * So each of these moments may be the last of memattach:
 *
 *   execve … padding written     the program is as the kernel made it, or has bytes in its padding that nothing reaches
 *   AT_ENTRY or main replaced    one write in one page, which the kernel makes wholly or not at all: the program comes
 *                                through the padding, sees that its parent has changed, and goes on
 *   it waits                     the same, after half a millisecond
 *   it is released               what led it there is as before; one stop: registers as at its entry, then zeros in the
 *                                padding. Without this stop it goes on by itself
 *
 * The right to trace is needed only at execve and at the release. In between the program runs and waits without a
 * tracer, and another process can attach to it.
 */
#pragma once

#include <sys/types.h>

#include "touch/changes.h"
#include "touch/start/start_image.h"

enum hold_state {
	HOLD_COMING,  /* on its way */
	HOLD_WAITING, /* it waits */
	HOLD_MISSED,  /* it will not: another program was executed, or it has ended */
};

struct entry_hold {
	pid_t pid;
	struct start_image image;
	uint64_t code;  /* the copy in the padding, 0: none */
	uint64_t entry; /* where it goes on */
	int lead;       /* row of the change that leads it to the copy */
	struct changes changes;
	bool seized; /* it did not stop for the release in time, and is to be let go of when it does */
};

/*
 * The thread, which is traced by the caller, is stopped at PTRACE_EVENT_EXEC and stays so. parent: what getppid() tells
 * it. Afterwards it may be detached from. -ENOSPC, -ENOEXEC and others: it is as it was and can run.
 */
int entry_hold_set(struct entry_hold *h, pid_t pid, pid_t parent, struct err *e) WARN_UNUSED;
enum hold_state entry_hold_look(const struct entry_hold *h);
/* It waits, and nobody traces it: it goes on. If the padding could not be cleared that stays, and nothing else. */
void entry_hold_release(struct entry_hold *h);
/* Now and then, after a release, when SIGCHLD has come. */
void entry_hold_let_go(struct entry_hold *h);
/* Closes; does not release. */
void entry_hold_close(struct entry_hold *h);
