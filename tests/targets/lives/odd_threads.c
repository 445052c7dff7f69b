/* SPDX-License-Identifier: MIT */
/*
 * Threads that cannot run code of somebody else: odd_threads MODE
 *
 *   raw       beside the first thread, one made by clone(2) with a thread pointer of its own, one with none, and one
 * with that of the first thread. They make system calls only dispatch  the only thread has its system calls turned into
 * SIGSYS (syscall user dispatch), as under Wine compat    the only thread is in 32-bit code for most of its time
 *   handler   the first thread is in a signal handler for good, and waits there
 */
#include "victim.h"

#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK_BYTES 65536

/* ---- raw ---- */

static volatile long beats[3];

static long call2(long number, const void *a, long b)
{
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(a), "S"(b) : "rcx", "r11", "memory");
	return result;
}

/* No function of the C library: its thread pointer is none of its. */
__attribute__((used, noreturn)) static void beat(volatile long *count)
{
	const struct timespec pause = { .tv_nsec = 3000000 };

	for (;;) {
		call2(SYS_nanosleep, &pause, 0);
		++*count;
	}
}

/* clone(flags, stack, tls); the new thread calls beat(count). */
long raw_clone(unsigned long flags, void *stack, void *tls, volatile long *count);
__asm__(".pushsection .text\n"
        ".globl raw_clone\n"
        ".type raw_clone, @function\n"
        "raw_clone:\n\t"
        ".cfi_startproc\n\t"
        "mov %rcx, %r9\n\t"
        "mov %rdx, %r8\n\t"
        "xor %edx, %edx\n\t"
        "xor %r10d, %r10d\n\t"
        "mov $56, %eax\n\t"
        "syscall\n\t"
        "test %rax, %rax\n\t"
        "jnz 1f\n\t"
        ".cfi_undefined rip\n\t"
        "xor %ebp, %ebp\n\t"
        "mov %r9, %rdi\n\t"
        "call beat\n\t"
        "1: ret\n\t"
        ".cfi_endproc\n"
        ".size raw_clone, . - raw_clone\n"
        ".popsection\n");

static void start_raw(unsigned which)
{
	static char stacks[3][STACK_BYTES] __attribute__((aligned(16)));
	static void *tls[64];
	unsigned long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;

	tls[0] = tls[2] = tls;
	if (which < 2)
		flags |= CLONE_SETTLS;
	if (raw_clone(flags, stacks[which] + STACK_BYTES, which == 0 ? tls : NULL, &beats[which]) < 0)
		victim_wrong("clone");
}

static void raw_round(void)
{
	const struct timespec pause = { .tv_nsec = 20000000 };
	const long before[3] = { beats[0], beats[1], beats[2] };

	for (unsigned look = 0; look < 500; look++) {
		nanosleep(&pause, NULL);
		if (beats[0] > before[0] && beats[1] > before[1] && beats[2] > before[2])
			return;
	}
	victim_wrong("a thread stands still");
}

/* ---- dispatch ---- */

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

static volatile char selector;
static volatile long dispatched;

/* The C library's system calls are allowed, also those that are made here in the name of others. */
static int find_library(struct dl_phdr_info *info, size_t bytes, void *range)
{
	const uintptr_t inside = (uintptr_t)dlsym(RTLD_DEFAULT, "syscall");
	unsigned long *found = range;

	(void)bytes;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD || inside - (info->dlpi_addr + p->p_vaddr) >= p->p_memsz)
			continue;
		found[0] = info->dlpi_addr + p->p_vaddr;
		found[1] = p->p_memsz;
		return 1;
	}
	return 0;
}

static void emulate(int number, siginfo_t *info, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)number, (void)info;
	selector = 0;
	dispatched++;
	g[REG_RAX] = syscall(g[REG_RAX], g[REG_RDI], g[REG_RSI], g[REG_RDX], g[REG_R10], g[REG_R8], g[REG_R9]);
	selector = 1;
}

static bool start_dispatch(void)
{
	struct sigaction action = { .sa_sigaction = emulate, .sa_flags = SA_SIGINFO };
	unsigned long range[2] = { 0 };

	sigaction(SIGSYS, &action, NULL);
	dl_iterate_phdr(find_library, range);
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, range[0], range[1], &selector))
		return false;
	selector = 1;
	return true;
}

static void dispatch_round(void)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	const long before = dispatched;
	long pid;

	nanosleep(&pause, NULL);
	__asm__ volatile("syscall" : "=a"(pid) : "0"(SYS_getpid) : "rcx", "r11", "memory");
	if (pid != getpid() || dispatched != before + 1)
		victim_wrong("getpid is %ld, after %ld calls", pid, dispatched - before);
}

/* ---- compat ---- */

/* Far jump to 32-bit code that counts down and jumps back. back: where the 64-bit half is, in low memory. */
void to_32_bit(void *code, void *slot);
__asm__(".pushsection .text\n"
        ".globl to_32_bit\n"
        ".type to_32_bit, @function\n"
        "to_32_bit:\n\t"
        "push %rbx\n\t"
        "push %rbp\n\t"
        "push %r12\n\t"
        "push %r13\n\t"
        "push %r14\n\t"
        "push %r15\n\t"
        "mov %rsp, (%rsi)\n\t"
        "lea 61440(%rsi), %rsp\n\t"
        "pushq $0x23\n\t"
        "push %rdi\n\t"
        "lretq\n"
        ".size to_32_bit, . - to_32_bit\n"
        ".popsection\n");

#define COUNT 20000000u
#define BACK 256
#define SLOT 4096

static unsigned char *make_32_bit(void)
{
	unsigned char *code =
		mmap(NULL, 65536, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (code == MAP_FAILED)
		return NULL;
	const uint32_t count = COUNT, back = (uint32_t)(uintptr_t)(code + BACK),
		       slot = (uint32_t)(uintptr_t)(code + SLOT);

	code[0] = 0xb9; /* mov $count, %ecx */
	memcpy(code + 1, &count, 4);
	memcpy(code + 5, "\x49\x75\xfd\xea", 4); /* dec %ecx; jnz; ljmp $0x33, $back */
	memcpy(code + 9, &back, 4);
	memcpy(code + 13, "\x33\0", 2);
	memcpy(code + BACK, "\x48\x8b\x24\x25", 4); /* 64-bit: mov slot, %rsp; pop …; ret */
	memcpy(code + BACK + 4, &slot, 4);
	memcpy(code + BACK + 8, "\x41\x5f\x41\x5e\x41\x5d\x41\x5c\x5d\x5b\xc3", 11);
	return code;
}

/* ---- handler ---- */

static void stay(int number)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	(void)number;
	victim_ready();
	while (!victim_done()) {
		nanosleep(&pause, NULL);
		victim_round();
	}
}

static void stay_in_handler(void)
{
	signal(SIGUSR2, stay);
	raise(SIGUSR2);
}

int main(int count, char **arguments)
{
	const char *mode = count > 1 ? arguments[1] : "";
	uint64_t random = 1;
	unsigned char *code = NULL;

	victim_start("odd_threads");
	for (unsigned i = 0; i < 3 && !strcmp(mode, "raw"); i++)
		start_raw(i);
	if (!strcmp(mode, "compat") && !(code = make_32_bit()))
		victim_wrong("mmap");
	if (!strcmp(mode, "dispatch") && !start_dispatch())
		victim_say("CANNOT no syscall user dispatch");
	if (!strcmp(mode, "handler"))
		stay_in_handler();
	else
		victim_ready();
	while (!victim_done()) {
		victim_block(&random);
		if (!strcmp(mode, "raw"))
			raw_round();
		else if (!strcmp(mode, "dispatch"))
			dispatch_round();
		else
			to_32_bit(code, code + SLOT);
		victim_round();
	}
	return victim_report();
}
