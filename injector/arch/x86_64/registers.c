/* SPDX-License-Identifier: MIT */
#include "arch/registers.h"

#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "control.h"

/* Kernel-internal results that a stopped thread shows in rax (include/linux/errno.h of the kernel). */
#define ERESTARTSYS 512
#define ERESTARTNOINTR 513
#define ERESTARTNOHAND 514
#define ERESTART_RESTARTBLOCK 516

#define SYSCALL_INSTRUCTION_BYTES 2
#define TRANSFER_MAX 0x7ffff000u /* MAX_RW_COUNT of the kernel: more is never done at once */
#define CPUID_XSAVE 0xd
#define MXCSR_DEFAULT 0x1f80 /* what the ABI promises to a function */
#define SEGMENT_64_BIT 0x33  /* __USER_CS; 32-bit code has 0x23 */

void registers_before_stop(struct blocked_call *before, pid_t pid, pid_t tid)
{
	(void)before, (void)pid, (void)tid;
}

const char *registers_would_lose(pid_t tid)
{
	(void)tid;
	return NULL;
}

bool registers_read(pid_t tid, const struct blocked_call *before, struct registers *regs)
{
	struct iovec iov = { &regs->general, sizeof regs->general };

	(void)before;
	return ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &iov) == 0;
}

bool registers_write(pid_t tid, const struct registers *regs)
{
	struct registers copy = *regs;
	struct iovec iov = { &copy.general, sizeof copy.general };

	return ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &iov) == 0;
}

size_t registers_read_extended(pid_t tid, void *buffer, size_t bytes)
{
	struct iovec iov = { buffer, bytes };

	return ptrace(PTRACE_GETREGSET, tid, (void *)NT_X86_XSTATE, &iov) == 0 ? iov.iov_len : 0;
}

uint64_t registers_extended_bytes(void)
{
	unsigned eax, ebx, ecx, edx;

	/* Intel SDM vol. 1, 13.2: ecx is the size for all components that the processor supports. */
	if (!__get_cpuid_count(CPUID_XSAVE, 0, &eax, &ebx, &ecx, &edx))
		return UINT64_MAX;
	return ecx;
}

static bool in_syscall(const struct registers *regs)
{
	return (int64_t)regs->general.orig_rax >= 0;
}

/* It has filled a part of its buffer, and may do so again from the start. */
static bool is_random_in_part(const struct registers *regs)
{
	return regs->general.orig_rax == SYS_getrandom && (int64_t)regs->general.rax > 0 &&
	       regs->general.rax < regs->general.rsi && regs->general.rsi <= TRANSFER_MAX &&
	       !(regs->general.rdx & GRND_RANDOM);
}

bool registers_hide_interruption(struct registers *regs, const struct blocked_call *before)
{
	(void)before;
	if (is_random_in_part(regs)) {
		regs->general.rax = (uint64_t)-ERESTARTNOINTR;
		return true;
	}
	if (!in_syscall(regs) || (int64_t)regs->general.rax != -EINTR)
		return false;
	regs->general.rax = (uint64_t)-ERESTARTNOHAND;
	return true;
}

void registers_note(pid_t tid, const struct registers *regs, struct stub_data *data, struct stub_frame *frame)
{
	(void)tid, (void)frame;
	data->mxcsr = MXCSR_DEFAULT;
	data->flags = regs->general.eflags;
	data->rax_restart = data->rax_handler = regs->general.rax;
	data->rip_restart = data->rip_handler = regs->general.rip;
	if (in_syscall(regs)) {
		uint64_t again = regs->general.rip - SYSCALL_INSTRUCTION_BYTES;
		switch (-(int64_t)regs->general.rax) {
		case ERESTARTNOINTR:
			data->rip_handler = again;
			data->rax_handler = regs->general.orig_rax;
			data->rip_restart = again;
			data->rax_restart = regs->general.orig_rax;
			break;
		case ERESTARTSYS:
			data->restarts = 1;
			/* fallthrough */
		case ERESTARTNOHAND:
			data->rax_handler = (uint64_t)-EINTR;
			data->rip_restart = again;
			data->rax_restart = regs->general.orig_rax;
			break;
		case ERESTART_RESTARTBLOCK:
			data->rax_handler = (uint64_t)-EINTR;
			data->rip_restart = again;
			data->rax_restart = SYS_restart_syscall;
			break;
		}
	}
	data->rbx = regs->general.rbx;
	data->rcx = regs->general.rcx;
	data->rdx = regs->general.rdx;
	data->rsi = regs->general.rsi;
	data->rdi = regs->general.rdi;
	data->rbp = regs->general.rbp;
	data->rsp = regs->general.rsp;
	data->r8 = regs->general.r8;
	data->r9 = regs->general.r9;
	data->r10 = regs->general.r10;
	data->r11 = regs->general.r11;
	data->r12 = regs->general.r12;
	data->r13 = regs->general.r13;
	data->r14 = regs->general.r14;
	data->r15 = regs->general.r15;
}

bool registers_returns(const struct registers *regs)
{
	(void)regs;
	return false;
}

struct registers registers_enter(const struct registers *regs, uint64_t stub)
{
	struct registers enter = *regs;

	enter.general.rip = stub;
	enter.general.orig_rax = (uint64_t)-1;
	enter.general.rax = 0;
	return enter;
}

struct registers registers_go_on(const struct registers *regs, bool interrupted)
{
	(void)interrupted;
	return *regs;
}

uint64_t registers_checkpoint(const struct registers *regs, bool *interrupted)
{
	*interrupted = false;
	bool entry = (int64_t)regs->general.rax == -ENOSYS && regs->general.orig_rax == SYS_getpid;

	if (entry && (regs->general.rdi == STUB_CHECKPOINT_CALLS || regs->general.rdi == STUB_CHECKPOINT_END))
		return regs->general.rdi;
	return 0;
}

bool registers_opens(const struct registers *regs, uint64_t *name)
{
	if ((int64_t)regs->general.rax != -ENOSYS || regs->general.orig_rax != SYS_openat)
		return false;
	*name = regs->general.rsi;
	return true;
}

void registers_duplicate_instead(struct registers *regs, int fd)
{
	regs->general.orig_rax = SYS_fcntl;
	regs->general.rdi = (uint64_t)fd;
	regs->general.rsi = F_DUPFD_CLOEXEC;
	regs->general.rdx = 0;
}

void registers_give_back_arguments(struct registers *regs, const struct registers *before)
{
	regs->general.rdi = before->general.rdi;
	regs->general.rsi = before->general.rsi;
	regs->general.rdx = before->general.rdx;
}

uint64_t registers_pc(const struct registers *regs)
{
	return regs->general.rip;
}

uint64_t registers_sp(const struct registers *regs)
{
	return regs->general.rsp;
}

uint64_t registers_fp(const struct registers *regs)
{
	return regs->general.rbp;
}

uint64_t registers_link(const struct registers *regs)
{
	(void)regs;
	return 0;
}

uint64_t registers_tp(const struct registers *regs)
{
	return regs->general.fs_base;
}

bool registers_in_64_bit_code(const struct registers *regs)
{
	return regs->general.cs == SEGMENT_64_BIT;
}

int64_t registers_syscall(const struct registers *regs)
{
	return in_syscall(regs) ? (int64_t)regs->general.orig_rax : -1;
}

int64_t registers_at_call(pid_t tid, const struct registers *regs)
{
	(void)tid;
	return registers_syscall(regs);
}

bool registers_sleeping(const struct registers *regs)
{
	int64_t result = -(int64_t)regs->general.rax;

	return in_syscall(regs) && (result == ERESTARTSYS || result == ERESTARTNOINTR || result == ERESTARTNOHAND ||
	                            result == ERESTART_RESTARTBLOCK || result == EINTR);
}

void registers_each(const struct registers *regs, void (*visit)(uint64_t, void *), void *data)
{
	const uint64_t values[] = { regs->general.rip, regs->general.rax, regs->general.rbx, regs->general.rcx,
		                    regs->general.rdx, regs->general.rsi, regs->general.rdi, regs->general.rbp,
		                    regs->general.r8,  regs->general.r9,  regs->general.r10, regs->general.r11,
		                    regs->general.r12, regs->general.r13, regs->general.r14, regs->general.r15 };

	for (unsigned i = 0; i < sizeof values / sizeof values[0]; i++)
		visit(values[i], data);
}

bool registers_follow_pc(const uint64_t words[REGISTERS_BEHIND_PC])
{
	const uint64_t flags_always = 0x202; /* interrupts enabled, bit 1 */

	return (words[0] & flags_always) == flags_always && words[0] < 1u << 22 &&
	       (words[1] & 0xffffffff) == SEGMENT_64_BIT;
}
