/* SPDX-License-Identifier: MIT */
#include "touch/remote/remote.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>

#include "arch/registers.h"
#include "arch/stub_frame.h"

#define ERRNO_MAX 4095 /* MAX_ERRNO of the kernel */

static uint64_t stub_code_bytes(void)
{
	return (uint64_t)(stub_code_end - stub_code);
}

uint64_t remote_cave_bytes(void)
{
	return stub_code_bytes() + sizeof(struct stub_data);
}

uint64_t remote_cave_data(uint64_t cave)
{
	return cave + stub_code_bytes();
}

static int write_area(struct remote *r, uint64_t at, const void *data, size_t bytes, struct err *e)
{
	return target_write(r->writer, CHANGE_WORK_AREA, at, data, bytes, e);
}

static int write_word(struct remote *r, uint64_t at, uint64_t value, struct err *e)
{
	return write_area(r, at, &value, sizeof value, e);
}

int remote_prepare(struct remote *r, const struct target_memory *memory, const struct target_writer *writer,
                   const struct stub_place *cave, uint64_t area, uint64_t extra_bytes, struct err *e)
{
	uint64_t extended = registers_extended_bytes();

	*r = (struct remote){
		.memory = memory,
		.writer = writer,
		.cave = *cave,
		.area = area,
		.area_bytes = (WORK_AT(extra) + extra_bytes + 4095) & ~4095ull,
		.extra_bytes = extra_bytes,
		.channel = CHANNEL_NONE,
	};
	if (extended > SA_EXTENDED_MAX)
		return err_set(e, ENOTSUP,
		               "the extended registers of this processor take %llu bytes; at most %d are provided for",
		               (unsigned long long)extended, SA_EXTENDED_MAX);
	changes_thread_is_back(writer->changes); /* of the stub that was in the padding before: it has left */
	if (!writer->changes->sums[CHANGE_PADDING][CHANGE_MADE])
		changes_made(writer->changes, CHANGE_PADDING);
	return target_write(writer, CHANGE_PADDING, cave->code, stub_code, stub_code_bytes(), e);
}

/* The same checkpoint as the argument of a system call. */
static uint64_t checkpoint_said(unsigned byte)
{
	return (STUB_CHECKPOINT_CALLS & ~0xffull) | byte;
}

static bool is_checkpoint(uint64_t said)
{
	return said == STUB_CHECKPOINT_CALLS || said == STUB_CHECKPOINT_END;
}

/* A thread that stops or speaks again and again, without coming to an end, does not put the deadline off. */
static int check_time(const struct remote *r, uint64_t deadline_ns, struct err *e)
{
	if (clock_monotonic_ns() < deadline_ns)
		return 0;
	return err_set(e, ETIMEDOUT, "thread %d did not come to the end of a call in time", r->tracee->tid);
}

/* Until when the thread is waited for before somebody is told. */
static uint64_t first_deadline(const struct remote *r, uint64_t deadline_ns)
{
	return r->late && r->late_ns < deadline_ns ? r->late_ns : deadline_ns;
}

static bool tell_late(struct remote *r, int rc)
{
	if (rc != -ETIMEDOUT || !r->late)
		return false;
	r->late(r->late_context);
	r->late = NULL;
	return true;
}

/* The channel's way of it. */
static int meet(struct remote *r, uint64_t *checkpoint, uint64_t deadline_ns, struct err *e)
{
	unsigned said = 0;

	int rc = channel_meet(&r->channel, r->tracee, &said, first_deadline(r, deadline_ns), e);
	if (tell_late(r, rc))
		rc = channel_hear(&r->channel, r->tracee, &said, deadline_ns, e);
	*checkpoint = checkpoint_said(said);
	return rc == 0 && !is_checkpoint(*checkpoint)
	               ? err_set(e, ETIMEDOUT, "thread %d speaks out of turn", r->tracee->tid)
	               : rc;
}

/* Runs the thread to a checkpoint, which a hostile program may put off for ever. Stops of system calls on the way, and
 * job control, are passed. */
static int run_to_checkpoint(struct remote *r, uint64_t *checkpoint, uint64_t deadline_ns, struct err *e)
{
	if (r->channel.here >= 0)
		return meet(r, checkpoint, deadline_ns, e);
	for (;;) {
		enum tracee_stop stop;
		struct registers regs;

		int rc = tracee_run(r->tracee, PTRACE_SYSCALL, first_deadline(r, deadline_ns), &stop, e);
		if (tell_late(r, rc))
			rc = tracee_wait(r->tracee, deadline_ns, &stop, e);
		if (rc == 0 && stop == TRACEE_STOP_SYSCALL)
			rc = tracee_registers(r->tracee, &regs, e);
		if (rc < 0)
			return rc;
		*checkpoint = stop == TRACEE_STOP_SYSCALL ? registers_checkpoint(&regs, &r->interrupted) : 0;
		if (*checkpoint)
			return 0;
		if (stop == TRACEE_STOP_SYSCALL && r->at_syscall)
			rc = r->at_syscall(r->at_syscall_context, r, &regs, e);
		rc = rc ?: check_time(r, deadline_ns, e);
		if (rc < 0)
			return rc;
	}
}

/*
 * Signals of faults stay as they are: the kernel ends a program that blocks one when it comes, and a program may live
 * on its faults (a heap that is write-protected, system calls that a filter turns into SIGSYS). The handler runs on the
 * stub's stack, or its own.
 */
static uint64_t faults(void)
{
	static const int list[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS };
	uint64_t mask = 0;

	for (unsigned i = 0; i < sizeof list / sizeof list[0]; i++)
		mask |= 1ull << (list[i] - 1);
	return mask;
}

/* Nothing of the target has changed yet but its padding: the registers and the mask, for the stub. */
static int note_state(struct remote *r, struct err *e)
{
	struct tracee *t = r->tracee;
	struct stub_data data = {
		.area = r->area,
		.area_bytes = r->area_bytes,
		.magic = STUB_MAGIC,
		.tid = (uint64_t)t->tid,
	};

	int rc = tracee_registers(t, &r->saved, e);
	if (rc < 0)
		return rc;
	if (registers_hide_interruption(&r->saved, &t->before)) {
		rc = tracee_set_registers(t, &r->saved, e);
		if (rc < 0)
			return rc;
	}
	rc = tracee_signal_mask(t, &r->saved_mask, e);
	if (rc < 0)
		return rc;
	data.old_signals = r->saved_mask;
	data.all_signals = r->blocked_mask = ~(faults() & ~r->saved_mask);
	memset(&r->frame, 0, sizeof r->frame);
	registers_note(t->tid, &r->saved, &data, &r->frame);
	if (!stub_frame_note(t->tid, &r->saved, &r->frame, &r->frame_bytes))
		return err_sys(e, "thread %d: cannot read its vector registers", t->tid);
	if (r->frame_bytes > r->cave.frame_bytes)
		return err_set(e, EBUSY,
		               "thread %d has live registers of SVE: a signal frame with these takes %llu unused bytes "
		               "of a module, and there are %llu",
		               t->tid, (unsigned long long)r->frame_bytes, (unsigned long long)r->cave.frame_bytes);
	stub_data_set_frame(&data, r->cave.frame, r->cave.frame_bytes);
	rc = target_write(r->writer, CHANGE_PADDING, remote_cave_data(r->cave.code), &data, sizeof data, e);
	return rc ?: target_write(r->writer, CHANGE_PADDING, r->cave.frame, &r->frame, r->frame_bytes, e);
}

/* Only the kernel can give all of them back, when it reads the frame. */
static bool is_back_by_frame(const struct remote *r)
{
	return r->frame_bytes > stub_frame_least();
}

/* From the last checkpoint to the entry of the call that returns by the frame. */
static int run_to_return(struct remote *r, uint64_t deadline_ns, struct err *e)
{
	enum tracee_stop stop;
	struct registers regs;

	for (;;) {
		int rc = tracee_run(r->tracee, PTRACE_SYSCALL, deadline_ns, &stop, e);
		if (rc == 0 && stop == TRACEE_STOP_SYSCALL)
			rc = tracee_registers(r->tracee, &regs, e);
		if (rc == 0 && stop == TRACEE_STOP_SYSCALL && registers_returns(&regs))
			return 0;
		rc = rc ?: check_time(r, deadline_ns, e);
		if (rc < 0)
			return rc;
	}
}

static int set_all(struct remote *r, struct err *e)
{
	struct tracee *t = r->tracee;

	if (!stub_frame_give_vectors_back(t->tid, &r->frame))
		return err_sys(e, "thread %d: cannot set its vector registers", t->tid);
	int rc = tracee_set_signal_mask(t, r->saved_mask, e);
	const struct registers on = registers_go_on(&r->saved, r->interrupted);
	return rc ?: tracee_set_registers(t, &on, e);
}

/* At the last checkpoint: out of the system call, then everything as it was, in a stop that lets the kernel decide. */
static int restore_state(struct remote *r, uint64_t deadline_ns, struct err *e)
{
	struct tracee *t = r->tracee;
	enum tracee_stop stop;

	int rc = is_back_by_frame(r) ? run_to_return(r, deadline_ns, e) : 0;
	rc = rc ?: tracee_ask(t, e);
	if (rc < 0)
		return rc;
	do {
		rc = tracee_run(t, PTRACE_CONT, deadline_ns, &stop, e);
		if (rc < 0)
			return rc;
	} while (stop != TRACEE_STOP_EVENT && stop != TRACEE_STOP_GROUP);
	rc = is_back_by_frame(r) ? 0 : set_all(r, e);
	r->inside = rc < 0;
	if (rc == 0)
		changes_thread_is_back(r->writer->changes);
	return rc;
}

int remote_enter(struct remote *r, struct tracee *t, uint64_t deadline_ns, struct err *e)
{
	uint64_t checkpoint = 0;

	r->tracee = t;
	r->cleanup_count = 0;
	int rc = note_state(r, e);
	if (rc < 0)
		return rc;
	struct registers enter = registers_enter(&r->saved, r->cave.code);
	changes_made(r->writer->changes, CHANGE_REGISTERS);
	rc = tracee_set_registers(t, &enter, e);
	if (rc < 0) {
		changes_thread_is_back(r->writer->changes);
		return rc;
	}
	changes_made(r->writer->changes, CHANGE_SIGNAL_MASK);
	changes_made(r->writer->changes, CHANGE_WORK_AREA);
	r->inside = true;
	/* Only now: had memattach died in between, nobody would have given the mask back. The stub does the same first.
	 */
	rc = tracee_set_signal_mask(t, r->blocked_mask, e);
	rc = rc ?: run_to_checkpoint(r, &checkpoint, deadline_ns, e);
	if (rc < 0)
		return rc;
	if (checkpoint == STUB_CHECKPOINT_END) {
		rc = restore_state(r, deadline_ns, e);
		return rc < 0 ? rc
		              : err_set(e, EAGAIN, "the work area could not be mapped at 0x%llx",
		                        (unsigned long long)r->area);
	}
	return 0;
}

int remote_call(struct remote *r, struct stub_call *calls, unsigned count, uint64_t deadline_ns, struct err *e)
{
	uint64_t checkpoint = 0;

	if (count == 0 || count > SA_CALL_MAX)
		return err_set(e, EINVAL, "a list of %u remote calls", count);
	int rc = write_area(r, REMOTE_AT(r, stub.calls), calls, count * sizeof *calls, e);
	rc = rc ?: write_word(r, REMOTE_AT(r, stub.call_count), count, e);
	rc = rc ?: run_to_checkpoint(r, &checkpoint, deadline_ns, e);
	if (rc < 0)
		return rc;
	if (checkpoint != STUB_CHECKPOINT_CALLS)
		return err_set(e, EPROTO, "thread %d: the stub left early", r->tracee->tid);
	return target_read(r->memory, REMOTE_AT(r, stub.calls), calls, count * sizeof *calls, e);
}

int remote_call1(struct remote *r, uint64_t target, const uint64_t arguments[6], uint64_t *result, uint64_t deadline_ns,
                 struct err *e)
{
	struct stub_call call = { .target = target };

	memcpy(call.argument, arguments, sizeof call.argument);
	int rc = remote_call(r, &call, 1, deadline_ns, e);
	if (rc == 0)
		*result = call.result;
	return rc;
}

int remote_result(uint64_t result, struct err *e)
{
	if (result <= INT64_MAX)
		return 0;
	int error = result >= -(uint64_t)ERRNO_MAX ? (int)-result : EPROTO;
	return err_set(e, error, "%s", strerror(error));
}

int remote_cleanup_indirect(struct remote *r, uint64_t number, uint64_t address, struct err *e)
{
	struct stub_call call = { .target = number | 1ull << SC_INDIRECT_BIT, .argument = { address } };

	if (r->cleanup_count == SA_CALL_MAX)
		return err_set(e, ENOSPC, "too many clean-up calls");
	int rc = write_area(r, REMOTE_AT(r, stub.cleanup) + r->cleanup_count * sizeof call, &call, sizeof call, e);
	rc = rc ?: write_word(r, REMOTE_AT(r, stub.cleanup_count), r->cleanup_count + 1, e);
	if (rc == 0)
		r->cleanup_count++;
	return rc;
}

int remote_channel(struct remote *r, const struct channel *channel, struct err *e)
{
	int rc = write_word(r, REMOTE_AT(r, stub.channel), (uint64_t)channel->there + 1, e);

	if (rc == 0)
		r->channel = *channel;
	return rc;
}

/*
 * The clean-up calls but the last, which closes the channel, become calls that the thread makes freely. They leave the
 * one list and enter the other in one write within a page: a death of memattach cannot divide it, so that nothing is
 * forgotten, and nothing is closed twice, which could be somebody else's by then.
 */
static int clean_up_early(struct remote *r, uint64_t deadline_ns, struct err *e)
{
	uint64_t checkpoint = 0;
	struct stub_area area;

	if (!r->channel.awaited || r->tracee->stopped || r->cleanup_count < 2)
		return 0;
	int rc = target_read(r->memory, r->area, &area, sizeof area, e);
	if (rc < 0)
		return rc;
	area.call_count = r->cleanup_count - 1;
	memcpy(area.calls, area.cleanup, area.call_count * sizeof area.calls[0]);
	area.cleanup[0] = area.cleanup[area.call_count];
	area.cleanup_count = r->cleanup_count = 1;
	rc = write_area(r, REMOTE_AT(r, stub), &area, sizeof area, e);
	return rc < 0 ? rc : run_to_checkpoint(r, &checkpoint, deadline_ns, e);
}

/* The thread waits at the channel: stopped there, it goes on as one that is traced. */
static int leave_channel(struct remote *r, uint64_t deadline_ns, struct err *e)
{
	enum tracee_stop stop;

	int rc = r->tracee->stopped ? 0 : tracee_interrupt(r->tracee, deadline_ns, &stop, e);
	rc = rc ?: write_word(r, REMOTE_AT(r, stub.channel), 0, e);
	return rc < 0 ? rc : channel_answer(&r->channel, e);
}

static int end_channel(struct remote *r, uint64_t deadline_ns, struct err *e)
{
	int rc = leave_channel(r, deadline_ns, e);

	channel_close(&r->channel);
	return rc;
}

int remote_call_traced(struct remote *r, struct stub_call *call, uint64_t deadline_ns, struct err *e)
{
	const struct channel none = CHANNEL_NONE;

	if (r->channel.here < 0)
		return remote_call(r, call, 1, deadline_ns, e);
	int rc = leave_channel(r, deadline_ns, e);
	if (rc < 0)
		return rc;
	struct channel channel = r->channel;
	r->channel = none;
	rc = remote_call(r, call, 1, deadline_ns, e);
	r->channel = channel;
	return rc < 0 ? rc : write_word(r, REMOTE_AT(r, stub.channel), (uint64_t)channel.there + 1, e);
}

int remote_keep_errno(struct remote *r, uint64_t errno_address, struct err *e)
{
	int32_t value;

	changes_made(r->writer->changes, CHANGE_ERRNO);
	int rc = target_read(r->memory, errno_address, &value, sizeof value, e);
	rc = rc ?: write_word(r, REMOTE_AT(r, stub.errno_value), (uint32_t)value, e);
	return rc ?: write_word(r, REMOTE_AT(r, stub.errno_address), errno_address, e);
}

int remote_leave(struct remote *r, uint64_t deadline_ns, struct err *e)
{
	uint64_t checkpoint = 0;

	int rc = clean_up_early(r, deadline_ns, e);
	rc = rc ?: end_channel(r, deadline_ns, e);
	while (rc == 0 && checkpoint != STUB_CHECKPOINT_END) {
		rc = run_to_checkpoint(r, &checkpoint, deadline_ns, e);
		if (rc == 0 && checkpoint != STUB_CHECKPOINT_END)
			rc = check_time(r, deadline_ns, e);
	}
	return rc < 0 ? rc : restore_state(r, deadline_ns, e);
}

void remote_abandon(struct remote *r)
{
	if (r->inside)
		tracee_detach(r->tracee);
	channel_close(&r->channel);
	r->inside = false;
}

int remote_erase(const struct target_writer *writer, const struct stub_place *cave, struct err *e)
{
	static const unsigned char zeros[4096];

	/* That of an earlier memattach is not in this one's table yet. */
	if (!writer->changes->sums[CHANGE_PADDING][CHANGE_MADE])
		changes_made(writer->changes, CHANGE_PADDING);
	int rc = cave->frame ? target_write(writer, CHANGE_PADDING, cave->frame, zeros, cave->frame_bytes, e) : 0;
	rc = rc ?: target_write(writer, CHANGE_PADDING, cave->code, zeros, remote_cave_bytes(), e);
	if (rc == 0)
		changes_end(writer->changes, CHANGE_PADDING, CHANGE_UNDONE);
	return rc;
}

static int check_zeros(const struct target_memory *memory, uint64_t at, uint64_t bytes, struct err *e)
{
	unsigned char now[4096];

	if (bytes > sizeof now)
		return err_set(e, EINVAL, "a place of %llu bytes", (unsigned long long)bytes);
	int rc = target_read(memory, at, now, bytes, e);
	for (uint64_t i = 0; rc == 0 && i < bytes; i++)
		if (now[i])
			rc = err_set(e, EADDRINUSE,
			             "the unused bytes at 0x%llx are not zero any more; nothing was changed",
			             (unsigned long long)at);
	return rc;
}

int remote_check_place(const struct target_memory *memory, const struct stub_place *place, struct err *e)
{
	if (remote_is_stub(memory, place->code))
		return 0;
	int rc = check_zeros(memory, place->code, remote_cave_bytes(), e);
	return rc < 0 || !place->frame ? rc : check_zeros(memory, place->frame, place->frame_bytes, e);
}

bool remote_is_stub(const struct target_memory *memory, uint64_t cave)
{
	unsigned char code[1024];

	return stub_code_bytes() <= sizeof code &&
	       target_read(memory, cave, code, stub_code_bytes(), ERR_IGNORED) == 0 &&
	       memcmp(code, stub_code, stub_code_bytes()) == 0;
}
