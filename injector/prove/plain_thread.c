/* SPDX-License-Identifier: MIT */
#include "prove/plain_thread.h"

#include <signal.h>

#include "arch/registers.h"
#include "process/proc_status.h"
#include "process/task.h"
#include "elf/tid_offset.h"

#define SELF 2u /* tcbhead_t of glibc: words 0 and 2 are its own address; of musl only the first */

static bool handles_sigsys(const struct tracee *t)
{
	char status[STATUS_BYTES];

	return proc_status_read(status, t->pid, t->tid) == 0 &&
	       (uint64_t)proc_status_number(status, "SigCgt", 16, 0) >> (SIGSYS - 1) & 1;
}

static int check_dispatch(const struct tracee *t, struct err *e)
{
	struct tracee_dispatch dispatch = { 0 };

	int rc = tracee_dispatch(t, &dispatch);
	if (rc == 0)
		return dispatch.mode ? err_set(e, EBUSY,
		                               "thread %d has its system calls turned into signals (syscall user "
		                               "dispatch)",
		                               t->tid)
		                     : 0;
	if (rc != -EIO || !handles_sigsys(t))
		return 0;
	return err_set(
		e, EBUSY,
		"the program handles SIGSYS, and this kernel cannot tell whether system calls of thread %d become "
		"signals",
		t->tid);
}

static int check_control_block(const struct tracee *t, uint64_t tp, enum libc_kind kind,
                               const struct target_memory *memory, struct err *e)
{
	const struct tid_pair pair = { tp, task_inner_tid(t->pid, t->tid) };
	uint64_t words[SELF + 1];

	const bool described = !THREAD_BLOCK_SELF || (target_read(memory, tp, words, sizeof words, ERR_IGNORED) == 0 &&
	                                              words[0] == tp && (kind != LIBC_GLIBC || words[SELF] == tp));
	if (tp && described && ((THREAD_BLOCK_SELF && t->tid == t->pid) || tid_offset_find(memory, &pair, 1)))
		return 0;
	return err_set(e, EBUSY, "thread %d is not one of the C library, its thread pointer leads elsewhere", t->tid);
}

int plain_thread_check(struct tracee *t, const struct registers *regs, enum libc_kind kind,
                       const struct target_memory *memory, struct err *e)
{
	if (!registers_in_64_bit_code(regs))
		return err_set(e, EBUSY, "thread %d is in 32-bit code", t->tid);
	const char *lost = registers_would_lose(t->tid);
	if (lost)
		return err_set(e, EBUSY, "thread %d has %s", t->tid, lost);
	int rc = check_dispatch(t, e);
	return rc < 0 ? rc : check_control_block(t, registers_tp(regs), kind, memory, e);
}
