/* SPDX-License-Identifier: MIT */
/*
 * At a stop in a system call the kernel has decided already whether the call starts again, and shows the result: the
 * program counter is at the svc and the first argument is back, or the call has returned. Which call it was, and
 * whether it was one, is told by what was seen before the stop (registers_before_stop).
 */
#include "arch/registers.h"

#include <asm/ptrace.h>
#include <asm/sigcontext.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>

#include "arch/aarch64/code_address.h"
#include "arch/aarch64/traced.h"
#include "arch/aarch64/words.h"
#include "arch/system_calls.h"

#ifndef NT_ARM_SSVE
#define NT_ARM_SSVE 0x40b
#define NT_ARM_ZA 0x40c
#endif
#define NT_ARM_GCS_STATE 0x410

#define CALL_BYTES 4u
#define CALL_REGISTER 8u /* holds the number */
#define NUMBER_WORDS 16u
#define FUNCTION_BYTES 256u
#define CALLERS 3u
#define FRAME 29u
#define LINK 30u
#define DIRECTION 7u /* at a stop of a system call: 0 at its entry */
#define STATE_32_BIT 0x10u
#define STATE_BRANCH_TYPE (3u << 10)
#define STATE_FLAGS 0xf0000000u
#define STATE_MODES 0x03001c00u /* DIT, TCO, SSBS, the type of the last branch */
#define VECTORS_HEAD ((uint64_t)sizeof(struct fpsimd_context) << 32 | FPSIMD_MAGIC)
#define STACK_FLAGS_INVALID 0x7fffffffu

bool registers_read(pid_t tid, const struct blocked_call *before, struct registers *regs)
{
	const struct user_regs_struct *g = &regs->general;

	if (!traced_get_set(tid, NT_PRSTATUS, &regs->general, sizeof regs->general) ||
	    !traced_get_set(tid, NT_ARM_TLS, &regs->thread_pointer, sizeof regs->thread_pointer))
		return false;
	const bool same = before && before->pc && g->sp == before->sp &&
	                  (int64_t)g->regs[CALL_REGISTER] == before->number;
	const bool again = same && g->pc + CALL_BYTES == before->pc && g->regs[0] == before->arguments[0];
	const bool returned = same && g->pc == before->pc && (int64_t)g->regs[0] == -EINTR;

	regs->call = again || returned ? before->number : -1;
	regs->instead = -1;
	return true;
}

bool registers_write(pid_t tid, const struct registers *regs)
{
	struct registers copy = *regs;
	int32_t call = (int32_t)regs->instead;

	return traced_put_set(tid, NT_PRSTATUS, &copy.general, sizeof copy.general) &&
	       (call < 0 || traced_put_set(tid, NT_ARM_SYSTEM_CALL, &call, sizeof call));
}

void registers_before_stop(struct blocked_call *before, pid_t pid, pid_t tid)
{
	if (!blocked_call_read(before, pid, tid) || before->number < 0)
		*before = (struct blocked_call){ .number = -1 };
}

size_t registers_read_extended(pid_t tid, void *buffer, size_t bytes)
{
	static const int sets[] = { NT_ARM_SVE,
		                    NT_FPREGSET }; /* the first has whole vectors, on processors with longer ones */

	for (unsigned i = 0; i < sizeof sets / sizeof sets[0]; i++) {
		struct iovec iov = { buffer, bytes };
		if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)sets[i], &iov) == 0)
			return iov.iov_len;
	}
	return 0;
}

uint64_t registers_extended_bytes(void)
{
	return 0;
}

const char *registers_would_lose(pid_t tid)
{
	struct user_sve_header header;
	uint64_t shadow[3] = { 0 };
	struct iovec iov = { &header, sizeof header };

	/* A system call ends the streaming mode, and functions that are called must not find ZA in use. */
	if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)NT_ARM_SSVE, &iov) == 0 && iov.iov_len >= sizeof header &&
	    header.flags & VECTORS_LIVE)
		return "live registers of streaming SVE";
	iov.iov_len = sizeof header;
	if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)NT_ARM_ZA, &iov) == 0 && iov.iov_len >= sizeof header &&
	    header.size > sizeof header)
		return "live registers of SME";
	iov = (struct iovec){ shadow, sizeof shadow };
	if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)NT_ARM_GCS_STATE, &iov) == 0 && shadow[0] & 1)
		return "a shadow stack";
	return NULL;
}

bool registers_hide_interruption(struct registers *regs, const struct blocked_call *before)
{
	if (regs->call < 0 || regs->general.pc != before->pc)
		return false;
	regs->general.pc -= CALL_BYTES;
	regs->general.regs[0] = before->arguments[0];
	return true;
}

/* The kernel remembers when it ends: only restart_syscall() waits for the rest. */
static bool has_rest(const struct registers *regs)
{
	const unsigned long long *x = regs->general.regs;

	switch (regs->call) {
	case SYS_nanosleep: return true;
	case SYS_clock_nanosleep: return !(x[1] & TIMER_ABSTIME);
	case SYS_futex:
		return x[3] && ((x[1] & FUTEX_CMD_MASK) == FUTEX_WAIT || (x[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET);
	default: return false;
	}
}

/* Does it return EINTR after any handler? The others start again after one with SA_RESTART (signal(7)). */
static bool ends_by_handler(const struct registers *regs)
{
	static const int calls[] = { SYS_ppoll,           SYS_pselect6,
		                     SYS_epoll_pwait,     441 /* epoll_pwait2 */,
		                     SYS_rt_sigsuspend,   SYS_rt_sigtimedwait,
		                     SYS_semop,           SYS_semtimedop,
		                     SYS_msgrcv,          SYS_msgsnd,
		                     SYS_nanosleep,       SYS_clock_nanosleep,
		                     SYS_io_getevents,    SYS_io_pgetevents,
		                     SYS_restart_syscall, 426 /* io_uring_enter */ };

	for (unsigned i = 0; i < sizeof calls / sizeof calls[0]; i++)
		if (regs->call == calls[i])
			return true;
	return has_rest(regs);
}

/* Does a system call's instruction stand there? */
static bool is_call(pid_t tid, uint64_t at)
{
	return traced_instruction(tid, at) == WORD_SYSTEM_CALL;
}

/* The number that the code before `at` has put into a register last; 0: not known. *taker: what else it got it by. */
static uint64_t number_before(pid_t tid, uint64_t at, unsigned to, uint32_t *taker)
{
	uint64_t number;

	*taker = 0;
	for (unsigned i = 1; i <= NUMBER_WORDS; i++) {
		const uint32_t word = traced_instruction(tid, at - i * CALL_BYTES);
		if (!word)
			return 0;
		if (!word_changes(word, to))
			continue;
		if (word_moves_number(word, &number))
			return number;
		*taker = word;
		return 0;
	}
	return 0;
}

static bool takes_first_argument(uint32_t word)
{
	return word == 0xd3407c08 /* ubfx x8, x0, #0, #32 */ || word == 0x2a0003e8 /* mov w8, w0 */ ||
	       word == 0xaa0003e8 /* mov x8, x0 */;
}

static bool calls(uint32_t word)
{
	unsigned what;
	bool call;

	return (word_is_jump(word, &call) && call) || (word_is_indirect(word, &what) && what == 1);
}

/* Where a number comes from: it is in the register in front of the instruction there. */
struct origin {
	uint64_t at;
	unsigned number;
};

/* Goes back to the entry of the function, from register to register; returns whether its caller has put it there. */
static bool origin_is_argument(pid_t tid, struct origin *o, uint64_t entry)
{
	for (; o->at > entry; o->at -= CALL_BYTES) {
		const uint32_t word = traced_instruction(tid, o->at - CALL_BYTES);
		if (word_changes(word, o->number) && !word_moves_register(word, &o->number))
			return false;
	}
	return true;
}

/* Where the function begins that is called in front of `back`, if `within` is in it, near to its begin; else 0. */
static uint64_t called_before(pid_t tid, uint64_t back, uint64_t within)
{
	const uint64_t at = back - CALL_BYTES;
	const uint32_t word = traced_instruction(tid, at);
	const uint64_t entry = at + (uint64_t)(word_signed(word, 0, 25) * 4);
	bool call;

	return word_is_jump(word, &call) && call && entry <= within && within - entry <= FUNCTION_BYTES ? entry : 0;
}

static uint64_t stored(pid_t tid, uint64_t at)
{
	errno = 0;
	const long word = ptrace(PTRACE_PEEKDATA, tid, (void *)(uintptr_t)at, NULL);
	return errno ? 0 : (uint64_t)word;
}

/*
 * By the code in front of the calls of the functions that hand the number on, as its callers do in glibc 2.41 for all
 * calls in which a thread may be cancelled. Where they return to is in the link register, and in frame records.
 */
static uint64_t number_of_callers(pid_t tid, const struct registers *regs)
{
	struct origin o = { regs->general.pc, CALL_REGISTER };
	uint64_t back = regs->general.regs[LINK], frame = regs->general.regs[FRAME];
	uint32_t taker;

	for (unsigned i = 0; i < CALLERS && back; i++) {
		const uint64_t after = code_address(back), entry = called_before(tid, after, o.at);
		if (entry) {
			if (!origin_is_argument(tid, &o, entry))
				return 0;
			o.at = after - CALL_BYTES;
			const uint64_t number = number_before(tid, o.at, o.number, &taker);
			if (number)
				return number;
		}
		back = stored(tid, frame + sizeof back);
		frame = stored(tid, frame);
	}
	return 0;
}

/*
 * The number of the call that the thread is about to go on with as restart_syscall(), by the code before it, or, where
 * that has it as its first argument, as syscall(3), by the code before the call of that, or by that of callers; 0: not
 * known. A return by rt_sigreturn makes the kernel forget the rest, so the stub alone makes the whole call again.
 */
static uint64_t number_in_code(pid_t tid, const struct registers *regs)
{
	const uint64_t caller = code_address(regs->general.regs[LINK]) - CALL_BYTES;
	struct registers again = *regs;
	uint32_t taker;

	uint64_t number = number_before(tid, regs->general.pc, CALL_REGISTER, &taker);
	if (!number && takes_first_argument(taker) && calls(traced_instruction(tid, caller)))
		number = number_before(tid, caller, 0, &taker);
	if (!number)
		number = number_of_callers(tid, regs);
	again.call = (int64_t)number;
	return number && has_rest(&again) ? number : 0;
}

void registers_note(pid_t tid, const struct registers *regs, struct stub_data *data, struct stub_frame *frame)
{
	data->restarts = !ends_by_handler(regs);
	frame->stack_flags = STACK_FLAGS_INVALID; /* the kernel leaves the alternate stack as it is */
	frame->mask = data->old_signals;
	memcpy(frame->registers, regs->general.regs, sizeof frame->registers);
	/* It sleeps in that, or was about to: an earlier stop had been hidden so, and it had no processor since. */
	if (regs->call == SYS_restart_syscall ||
	    (regs->call < 0 && regs->general.regs[CALL_REGISTER] == SYS_restart_syscall &&
	     is_call(tid, regs->general.pc))) {
		const uint64_t number = number_in_code(tid, regs);
		frame->registers[CALL_REGISTER] = number ? number : SYS_restart_syscall;
	}
	frame->sp = regs->general.sp;
	frame->pc = regs->general.pc;
	frame->pstate = regs->general.pstate;
}

bool registers_returns(const struct registers *regs)
{
	return regs->general.regs[DIRECTION] == 0 && regs->general.regs[CALL_REGISTER] == SYS_rt_sigreturn;
}

struct registers registers_enter(const struct registers *regs, uint64_t stub)
{
	struct registers enter = *regs;

	enter.general.pc = stub;
	enter.general.pstate &= ~(uint64_t)STATE_BRANCH_TYPE;
	return enter;
}

struct registers registers_go_on(const struct registers *regs, bool interrupted)
{
	struct registers on = *regs;

	if (regs->call < 0)
		return on;
	if (interrupted) {
		on.general.regs[0] = (uint64_t)-EINTR;
		on.general.pc += CALL_BYTES;
	} else if (has_rest(regs)) {
		on.general.regs[CALL_REGISTER] = SYS_restart_syscall;
	}
	return on;
}

uint64_t registers_checkpoint(const struct registers *regs, bool *interrupted)
{
	const unsigned long long *x = regs->general.regs;

	*interrupted = x[1] != 0;
	if (x[DIRECTION] == 0 && x[CALL_REGISTER] == SYS_getpid &&
	    (x[0] == STUB_CHECKPOINT_CALLS || x[0] == STUB_CHECKPOINT_END))
		return x[0];
	return 0;
}

bool registers_opens(const struct registers *regs, uint64_t *name)
{
	*name = regs->general.regs[1];
	return regs->general.regs[DIRECTION] == 0 && regs->general.regs[CALL_REGISTER] == SYS_openat;
}

void registers_duplicate_instead(struct registers *regs, int fd)
{
	regs->instead = SYS_fcntl;
	regs->general.regs[0] = (uint64_t)fd;
	regs->general.regs[1] = F_DUPFD_CLOEXEC;
	regs->general.regs[2] = 0;
}

/* The first register has the result. */
void registers_give_back_arguments(struct registers *regs, const struct registers *before)
{
	regs->general.regs[1] = before->general.regs[1];
	regs->general.regs[2] = before->general.regs[2];
}

uint64_t registers_pc(const struct registers *regs)
{
	return regs->general.pc;
}

uint64_t registers_sp(const struct registers *regs)
{
	return regs->general.sp;
}

uint64_t registers_fp(const struct registers *regs)
{
	return regs->general.regs[29];
}

uint64_t registers_link(const struct registers *regs)
{
	return regs->general.regs[LINK];
}

uint64_t registers_tp(const struct registers *regs)
{
	return regs->thread_pointer;
}

bool registers_in_64_bit_code(const struct registers *regs)
{
	return !(regs->general.pstate & STATE_32_BIT);
}

int64_t registers_syscall(const struct registers *regs)
{
	return regs->call;
}

int64_t registers_at_call(pid_t tid, const struct registers *regs)
{
	const uint64_t pc = regs->general.pc;

	if (regs->call >= 0)
		return regs->call;
	return is_call(tid, pc) || is_call(tid, pc - CALL_BYTES) ? (int64_t)regs->general.regs[CALL_REGISTER] : -1;
}

bool registers_sleeping(const struct registers *regs)
{
	return regs->call >= 0;
}

void registers_each(const struct registers *regs, void (*visit)(uint64_t, void *), void *data)
{
	visit(regs->general.pc, data);
	for (unsigned i = 0; i <= LINK; i++)
		visit(regs->general.regs[i], data);
	visit(code_address(regs->general.regs[LINK]), data);
}

/* The processor's state, which may be 0; a word that the kernel does not write; the head of the vector registers, which
 * it writes first of what may be there (struct fpsimd_context). */
bool registers_follow_pc(const uint64_t words[REGISTERS_BEHIND_PC])
{
	return !(words[0] & ~(uint64_t)(STATE_FLAGS | STATE_MODES)) && words[2] == VECTORS_HEAD;
}
