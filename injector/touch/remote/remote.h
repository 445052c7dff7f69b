/* SPDX-License-Identifier: MIT */
/*
 * Calls on a borrowed thread of the target, in an order that survives the death of memattach at any instant.
 *
 * The problem: between the first changed register and the last restored one, a tracer that dies leaves a thread with
 * somebody else's program counter. So the thread is given, in one step, to a small program (arch/<cpu>/stub.S) that
 * knows how to bring it back without any help, and the tracer only feeds that program with calls:
 *
 *   remote_prepare   the stub's code goes into the cave, unused padding of an executable page: harmless
 *   remote_enter     the thread is stopped at a safe point (borrow.h). Registers and mask are noted in the cave, and in
 *                    a frame for the kernel where the machine needs one (arch/stub.h): harmless. The data that tell of
 *                    the frame come before it, so a later memattach finds what this one has written. One PTRACE_SETREGS
 *                    points the program counter to the stub: the commit. It blocks all signals but those of faults,
 *                    maps a work area with a stack of its own (the thread's is not touched), saves the extended
 *                    registers there, if they are not in the frame, and stops at the first checkpoint: a harmless
 *                    system call that only a tracer notices.
 *   remote_call      at a checkpoint, the tracer writes a list of calls and resumes; the stub makes them and comes to
 *                    the next checkpoint. A stub without a tracer finds an empty list.
 *   remote_channel   once the target has a socket whose other end only memattach holds, the thread runs freely: its
 *                    checkpoints are messages (channel.h) instead of stops.
 *   remote_leave     an empty list: the stub makes the clean-up calls, puts errno and the extended registers back that
 *                    it has saved, unmaps the area, and stops at the last checkpoint. There a living tracer restores
 *                    everything else in a stop that is no system call stop, so that the kernel decides about restarting
 *                    an interrupted call; a stub alone restores the registers by moves, or by the frame, and decides by
 *                    the signals that are pending. Where the frame has what only the kernel can give back (live
 *                    registers of SVE, of a thread that is in no call) it returns by it in any case, and is stopped
 *                    behind that.
 *   remote_erase     zeros over the frame, then over the stub, which tells of it.
 *
 * What a dead memattach leaves behind in the worst case: the stub's code in the padding, and whatever the calls made.
 * The clean-up list is kept so that descriptors and mappings of an attach that did not come to its end go away.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "touch/remote/cave.h"
#include "touch/remote/channel.h"
#include "base/err.h"
#include "process/target_read.h"
#include "touch/remote/target_write.h"
#include "touch/remote/work_area.h"
#include "touch/threads/tracee.h"

struct remote {
	struct tracee *tracee;
	const struct target_memory *memory;
	const struct target_writer *writer;
	struct stub_place cave; /* where the stub is in the target */
	uint64_t area;          /* address of the work area */
	uint64_t area_bytes;
	uint64_t extra_bytes; /* room for data after the stack */
	struct channel channel;
	struct registers saved;
	struct stub_frame frame; /* vectors, too, where the stub does not save them */
	uint64_t frame_bytes;    /* of it: registers_note() */
	uint64_t saved_mask;
	uint64_t blocked_mask; /* meanwhile: all signals but those of faults */
	unsigned cleanup_count;
	bool inside;      /* the thread is in the stub */
	bool interrupted; /* registers_go_on() */
	/* Called once, when a call lasts for longer than until late_ns, before it is waited for longer; NULL: nobody
	 * is. */
	void (*late)(void *context);
	void *late_context;
	uint64_t late_ns;
	/* Called at the entry and at the exit of each system call of a call that is traced (remote_call_traced). */
	int (*at_syscall)(void *context, struct remote *r, const struct registers *regs, struct err *e);
	void *at_syscall_context;
};

/* Bytes that a cave must have for the code of the stub and its data. */
uint64_t remote_cave_bytes(void);
/* Address of struct stub_data of a stub in the cave. */
uint64_t remote_cave_data(uint64_t cave);

/* Are the bytes there those that were found, zeros or the stub of an earlier memattach? -EADDRINUSE: others write them,
 * too. */
int remote_check_place(const struct target_memory *memory, const struct stub_place *place, struct err *e) WARN_UNUSED;
/* Writes the stub's code into the cave. The thread must be seized (writing to code needs a tracer on hardened kernels).
 */
int remote_prepare(struct remote *r, const struct target_memory *memory, const struct target_writer *writer,
                   const struct stub_place *cave, uint64_t area, uint64_t extra_bytes, struct err *e) WARN_UNUSED;
/* The thread is in TRACEE_STOP_EVENT or _GROUP at a safe point. On failure it is as before, and still stopped. */
int remote_enter(struct remote *r, struct tracee *t, uint64_t deadline_ns, struct err *e) WARN_UNUSED;
/* Makes count calls; results are in calls[].result. -ETIMEDOUT: the calls go on, the thread will finish by itself; only
 * remote_abandon may follow. */
int remote_call(struct remote *r, struct stub_call *calls, unsigned count, uint64_t deadline_ns,
                struct err *e) WARN_UNUSED;
/* The same for one call, and the thread stops at each of its system calls, whether there is a channel or not: for
 * at_syscall. */
int remote_call_traced(struct remote *r, struct stub_call *call, uint64_t deadline_ns, struct err *e) WARN_UNUSED;
/* Convenience: one call of up to six arguments. */
int remote_call1(struct remote *r, uint64_t target, const uint64_t arguments[6], uint64_t *result, uint64_t deadline_ns,
                 struct err *e) WARN_UNUSED;
/* 0, or the errno that a system call of the target says it got; a program may write there what it likes. */
int remote_result(uint64_t result, struct err *e) WARN_UNUSED;
/*
 * Adds a system call that the stub makes before it leaves; its argument is the int that is at address (in the target)
 * then. So a descriptor can be cared for before the call that makes it: had memattach to note its number afterwards, a
 * death in between would leave it open.
 */
int remote_cleanup_indirect(struct remote *r, uint64_t number, uint64_t address, struct err *e) WARN_UNUSED;
/*
 * The other end of the opened channel is descriptor `there` of the target now, which the last of the clean-up calls
 * closes: the thread synchronises with memattach through it.
 */
int remote_channel(struct remote *r, const struct channel *channel, struct err *e) WARN_UNUSED;
/* errno of the thread is put back when it leaves. */
int remote_keep_errno(struct remote *r, uint64_t errno_address, struct err *e) WARN_UNUSED;
/* Brings the thread back to exactly where it was; it is still stopped, to be resumed by tracee_detach. */
int remote_leave(struct remote *r, uint64_t deadline_ns, struct err *e) WARN_UNUSED;
/* Lets go of a thread whose calls do not end: the stub finishes alone. */
void remote_abandon(struct remote *r);
/* Puts the padding back to zeros. Only when no thread is in it. */
int remote_erase(const struct target_writer *writer, const struct stub_place *cave, struct err *e) WARN_UNUSED;
/* Is the code of a stub there? */
bool remote_is_stub(const struct target_memory *memory, uint64_t cave);

/* The address of a member of struct work_area in the target. */
#define REMOTE_AT(r, member) ((r)->area + WORK_AT(member))
