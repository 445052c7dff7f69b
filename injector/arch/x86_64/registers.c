/* SPDX-License-Identifier: MIT */
#include "arch/registers.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/syscall.h>

#include "control.h"

/* Kernel-internal results that a stopped thread shows in rax (include/linux/errno.h of the kernel). */
#define ERESTARTSYS 512
#define ERESTARTNOINTR 513
#define ERESTARTNOHAND 514
#define ERESTART_RESTARTBLOCK 516

#define SYSCALL_INSTRUCTION_BYTES 2
#define TRANSFER_MAX 0x7ffff000u /* MAX_RW_COUNT of the kernel: more is never done at once */
#define CPUID_XSAVE 0xd
#define SEGMENT_64_BIT 0x33 /* __USER_CS; 32-bit code has 0x23 */

uint64_t registers_extended_bytes(void)
{
	unsigned eax, ebx, ecx, edx;

	/* Intel SDM vol. 1, 13.2: ecx is the size for all components that the processor supports. */
	if (!__get_cpuid_count(CPUID_XSAVE, 0, &eax, &ebx, &ecx, &edx))
		return 0;
	return ecx;
}

static bool in_syscall(const struct user_regs_struct *regs)
{
	return (int64_t)regs->orig_rax >= 0;
}

/* It has filled a part of its buffer, and may do so again from the start. */
static bool is_random_in_part(const struct user_regs_struct *regs)
{
	return regs->orig_rax == SYS_getrandom && (int64_t)regs->rax > 0 && regs->rax < regs->rsi &&
	       regs->rsi <= TRANSFER_MAX && !(regs->rdx & GRND_RANDOM);
}

bool registers_hide_interruption(struct user_regs_struct *regs)
{
	if (is_random_in_part(regs)) {
		regs->rax = (uint64_t)-ERESTARTNOINTR;
		return true;
	}
	if (!in_syscall(regs) || (int64_t)regs->rax != -EINTR)
		return false;
	regs->rax = (uint64_t)-ERESTARTNOHAND;
	return true;
}

void registers_note(const struct user_regs_struct *regs, struct stub_data *data)
{
	data->flags = regs->eflags;
	data->rax_restart = data->rax_handler = regs->rax;
	data->rip_restart = data->rip_handler = regs->rip;
	if (in_syscall(regs)) {
		uint64_t again = regs->rip - SYSCALL_INSTRUCTION_BYTES;
		switch (-(int64_t)regs->rax) {
		case ERESTARTNOINTR:
			data->rip_handler = again;
			data->rax_handler = regs->orig_rax;
			data->rip_restart = again;
			data->rax_restart = regs->orig_rax;
			break;
		case ERESTARTSYS:
			data->restarts = 1;
			/* fallthrough */
		case ERESTARTNOHAND:
			data->rax_handler = (uint64_t)-EINTR;
			data->rip_restart = again;
			data->rax_restart = regs->orig_rax;
			break;
		case ERESTART_RESTARTBLOCK:
			data->rax_handler = (uint64_t)-EINTR;
			data->rip_restart = again;
			data->rax_restart = SYS_restart_syscall;
			break;
		}
	}
	data->rbx = regs->rbx;
	data->rcx = regs->rcx;
	data->rdx = regs->rdx;
	data->rsi = regs->rsi;
	data->rdi = regs->rdi;
	data->rbp = regs->rbp;
	data->rsp = regs->rsp;
	data->r8 = regs->r8;
	data->r9 = regs->r9;
	data->r10 = regs->r10;
	data->r11 = regs->r11;
	data->r12 = regs->r12;
	data->r13 = regs->r13;
	data->r14 = regs->r14;
	data->r15 = regs->r15;
}

struct user_regs_struct registers_enter(const struct user_regs_struct *regs, uint64_t stub)
{
	struct user_regs_struct enter = *regs;

	enter.rip = stub;
	enter.orig_rax = (uint64_t)-1;
	enter.rax = 0;
	return enter;
}

uint64_t registers_checkpoint(const struct user_regs_struct *regs)
{
	bool entry = (int64_t)regs->rax == -ENOSYS && regs->orig_rax == SYS_getpid;

	if (entry && (regs->rdi == STUB_CHECKPOINT_CALLS || regs->rdi == STUB_CHECKPOINT_END))
		return regs->rdi;
	return 0;
}

bool registers_opens(const struct user_regs_struct *regs, uint64_t *name)
{
	if ((int64_t)regs->rax != -ENOSYS || regs->orig_rax != SYS_openat)
		return false;
	*name = regs->rsi;
	return true;
}

void registers_duplicate_instead(struct user_regs_struct *regs, int fd)
{
	regs->orig_rax = SYS_fcntl;
	regs->rdi = (uint64_t)fd;
	regs->rsi = F_DUPFD_CLOEXEC;
	regs->rdx = 0;
}

void registers_give_back_arguments(struct user_regs_struct *regs, const struct user_regs_struct *before)
{
	regs->rdi = before->rdi;
	regs->rsi = before->rsi;
	regs->rdx = before->rdx;
}

uint64_t registers_pc(const struct user_regs_struct *regs)
{
	return regs->rip;
}

uint64_t registers_sp(const struct user_regs_struct *regs)
{
	return regs->rsp;
}

uint64_t registers_fp(const struct user_regs_struct *regs)
{
	return regs->rbp;
}

uint64_t registers_tp(const struct user_regs_struct *regs)
{
	return regs->fs_base;
}

bool registers_in_64_bit_code(const struct user_regs_struct *regs)
{
	return regs->cs == SEGMENT_64_BIT;
}

int64_t registers_syscall(const struct user_regs_struct *regs)
{
	return in_syscall(regs) ? (int64_t)regs->orig_rax : -1;
}

bool registers_sleeping(const struct user_regs_struct *regs)
{
	int64_t result = -(int64_t)regs->rax;

	return in_syscall(regs) && (result == ERESTARTSYS || result == ERESTARTNOINTR || result == ERESTARTNOHAND ||
	                            result == ERESTART_RESTARTBLOCK || result == EINTR);
}

void registers_each(const struct user_regs_struct *regs, void (*visit)(uint64_t, void *), void *data)
{
	const uint64_t values[] = { regs->rip, regs->rax, regs->rbx, regs->rcx, regs->rdx, regs->rsi,
		                    regs->rdi, regs->rbp, regs->r8,  regs->r9,  regs->r10, regs->r11,
		                    regs->r12, regs->r13, regs->r14, regs->r15 };

	for (unsigned i = 0; i < sizeof values / sizeof values[0]; i++)
		visit(values[i], data);
}

bool registers_follow_pc(uint64_t first, uint64_t second)
{
	const uint64_t flags_always = 0x202; /* interrupts enabled, bit 1 */

	return (first & flags_always) == flags_always && first < 1u << 22 && (second & 0xffffffff) == SEGMENT_64_BIT;
}
