/* SPDX-License-Identifier: MIT */
/*
 * Allocates on stacks that no C library made: mapped for the purpose, with nothing readable around them, and switched
 * to in every way that programs have: assembler without unwind information in the program or in memory of its own (as a
 * JIT compiler's code), inline assembler, swapcontext, signal handlers on stacks of their own. What calls the
 * allocation on such a stack has anything in %rbp. The main thread does it, a thread that was there before, and ever
 * new ones. A round is one stack; their number is a line STACKS now and then.
 */
#include "victim.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE 4096u
#define AREA_PAGES 64u
#define SIGNAL_STACK_PAGES 4u
#define STACKS_OF_A_LINE 5000u

/* on_stack(top, function, argument, rbp): calls the function there. May be copied elsewhere. */
__asm__(".text\n"
        ".globl on_stack, on_stack_end\n"
        ".type on_stack, @function\n"
        "on_stack:\n"
        "	push	%rbp\n"
        "	push	%rbx\n"
        "	mov	%rsp, %rbx\n"
        "	mov	%rdi, %rsp\n"
        "	mov	%rcx, %rbp\n"
        "	mov	%rsi, %rax\n"
        "	mov	%rdx, %rdi\n"
        "	call	*%rax\n"
        "	mov	%rbx, %rsp\n"
        "	pop	%rbx\n"
        "	pop	%rbp\n"
        "	ret\n"
        ".size on_stack, . - on_stack\n"
        "on_stack_end:\n");

typedef void (*work_function)(uint64_t argument);
typedef void (*on_stack_function)(void *top, work_function work, uint64_t argument, uint64_t rbp);
void on_stack(void *top, work_function work, uint64_t argument, uint64_t rbp);
extern const char on_stack_end[];

static on_stack_function on_stack_made; /* the copy */
static atomic_uint stacks_made;

/* Of each thread. */
struct odd {
	uint64_t random;
	char *area;   /* AREA_PAGES, most of which are unmapped */
	char *bottom; /* of the stack */
	char *top;
	char *rest; /* what else is mapped of the area */
	size_t rest_bytes;
	char *signal_stack;
	ucontext_t here, there;
};

static __thread struct odd *odd;

VICTIM_FRAME static void allocate(uint64_t depth)
{
	volatile char room[200];

	room[0] = (char)depth;
	if (depth & 15) {
		allocate(depth - 1);
	} else {
		victim_block(&odd->random);
		if (depth & 16)
			raise(SIGUSR2);
	}
	if (room[0] != (char)depth)
		victim_wrong("the stack changed");
}

static void on_signal(int signal_number)
{
	(void)signal_number;
	allocate(3);
}

static uint64_t anything(void)
{
	uint64_t dice = victim_random(&odd->random);

	switch (dice % 5) {
	case 0: return (uint64_t)odd->area + dice / 8 % (AREA_PAGES * PAGE / 8) * 8;
	case 1: return (uint64_t)odd->top + dice / 8 % 64 * 8 - 256;
	case 2: return (uint64_t)odd->bottom + dice / 8 % 1024 * 8;
	case 3: return (uint64_t)&dice + dice / 8 % 65536 * 8; /* the thread's own, or above it */
	default: return dice;
	}
}

/* Inline assembler: the compiler does not know of the other stack. */
VICTIM_FRAME static void on_stack_inline(char *top, uint64_t depth)
{
	__asm__ volatile("mov %%rsp, %%rbx\n\t"
	                 "mov %0, %%rsp\n\t"
	                 "call *%1\n\t"
	                 "mov %%rbx, %%rsp"
	                 : "+r"(top)
	                 : "a"(allocate), "D"(depth)
	                 : "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
	__asm__ volatile("" : : : "memory");
}

static void on_context(uint32_t low, uint32_t high)
{
	allocate(low | (uint64_t)high << 32);
}

static void on_stack_context(uint64_t depth)
{
	getcontext(&odd->there);
	odd->there.uc_stack.ss_sp = odd->bottom;
	odd->there.uc_stack.ss_size = (size_t)(odd->top - odd->bottom);
	odd->there.uc_link = &odd->here;
	makecontext(&odd->there, (void (*)(void))on_context, 2, (uint32_t)depth, (uint32_t)(depth >> 32));
	swapcontext(&odd->here, &odd->there);
}

static void *map(size_t bytes, int protection)
{
	char *address = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (address == MAP_FAILED) {
		victim_wrong("no memory");
		_exit(1);
	}
	return address;
}

/* Some pages in the middle of what was mapped whole; around them holes, and perhaps something else that can be read. */
static void new_stack(void)
{
	uint64_t dice = victim_random(&odd->random);
	uint32_t pages = 3 + dice % 6, first = 1 + dice / 8 % (AREA_PAGES - 12);

	odd->area = map(AREA_PAGES * PAGE, PROT_READ | PROT_WRITE);
	odd->bottom = odd->area + first * PAGE;
	odd->top = odd->bottom + pages * PAGE;
	odd->rest = odd->top + PAGE;
	odd->rest_bytes = (size_t)(odd->area + AREA_PAGES * PAGE - odd->rest);
	memset(odd->bottom, 0x5a, pages * PAGE);
	munmap(odd->area, first * PAGE);
	munmap(odd->top, PAGE);
	if (dice >> 33 & 1) {
		munmap(odd->rest, odd->rest_bytes);
		odd->rest_bytes = 0;
	}
}

static void end_stack(void)
{
	munmap(odd->bottom, (size_t)(odd->top - odd->bottom));
	if (odd->rest_bytes)
		munmap(odd->rest, odd->rest_bytes);
}

static void one_stack(void)
{
	uint64_t dice, depth;

	new_stack();
	dice = victim_random(&odd->random);
	depth = dice >> 8 & 31;
	switch (dice % 4) {
	case 0: on_stack(odd->top, allocate, depth, anything()); break;
	case 1: on_stack_made(odd->top, allocate, depth, anything()); break;
	case 2: on_stack_inline(odd->top, depth); break;
	default: on_stack_context(depth);
	}
	end_stack();
	unsigned made = atomic_fetch_add(&stacks_made, 1) + 1;
	if (made % STACKS_OF_A_LINE == 0)
		victim_say("STACKS %u", made);
	victim_round();
}

/* `stacks` stacks, 0: until the end. */
static void work(uint64_t seed, unsigned stacks)
{
	struct odd mine = { .random = seed };
	stack_t signals;

	odd = &mine;
	mine.signal_stack = map(SIGNAL_STACK_PAGES * PAGE, PROT_READ | PROT_WRITE);
	signals = (stack_t){ .ss_sp = mine.signal_stack, .ss_size = SIGNAL_STACK_PAGES * PAGE };
	sigaltstack(&signals, NULL);
	for (unsigned i = 0; (!stacks || i < stacks) && !victim_done(); i++)
		one_stack();
	signals = (stack_t){ .ss_flags = SS_DISABLE };
	sigaltstack(&signals, NULL);
	munmap(mine.signal_stack, SIGNAL_STACK_PAGES * PAGE);
}

static void *old_thread(void *argument)
{
	(void)argument;
	work(77777, 0);
	return NULL;
}

static void *new_thread(void *seed)
{
	work((uint64_t)(uintptr_t)seed, 20);
	return NULL;
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	uint64_t random = 4711;
	pthread_t thread, young;
	char *code;

	victim_start("odd_stacks");
	code = map(PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
	memcpy(code, (const void *)on_stack, (size_t)(on_stack_end - (const char *)on_stack));
	on_stack_made = (on_stack_function)code;
	sigaction(SIGUSR2, &action, NULL);
	pthread_create(&thread, NULL, old_thread, NULL);
	victim_ready();
	while (!victim_done()) {
		pthread_create(&young, NULL, new_thread, (void *)(uintptr_t)(victim_random(&random) | 1));
		work(victim_random(&random), 20);
		pthread_join(young, NULL);
	}
	pthread_join(thread, NULL);
	return victim_report();
}
