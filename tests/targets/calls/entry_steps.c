/* SPDX-License-Identifier: MIT */
/*
 * entry_steps FUNCTION own|alternate|leave: "go K" on stdin calls malloc, free or realloc step by step. K instructions
 * behind its entry the handler of the step stays, on the thread's own stack or on an alternate one, and says
 *
 *     AT entry+N     where it is, until the next line on stdin; then
 *     DONE           the call has returned, or it had no K instructions
 *
 * leave: the handler leaves the function by siglongjmp() where its displaced instructions are behind it, and
 * LEFT_BLOCKS blocks of 100 bytes are allocated and freed, from little deeper in the stack.
 *
 * So a thread can be held at any instruction of an entry, of the jumps that replace it, and of what they lead to.
 * Another thread sleeps all the time, and can be borrowed.
 */
#include "victim.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#define TRAP_FLAG 0x100
#define LEFT_BLOCKS 1000
#define ENTRY_BYTES 16 /* no more are displaced */
#define BODY_BYTES 64

static uint64_t entry;
static long steps, wanted; /* steps < 0: not at the entry yet */
static bool leaves;
static sigjmp_buf outside;

static void on_step(int signal, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	uint64_t pc = (uint64_t)registers[REG_RIP];
	char line[16];

	(void)signal;
	(void)info;
	if (leaves && pc - entry - ENTRY_BYTES < BODY_BYTES)
		siglongjmp(outside, 1);
	if (leaves || (steps < 0 && pc != entry) || ++steps != wanted)
		return;
	registers[REG_EFL] &= ~TRAP_FLAG;
	victim_say("AT entry%+ld", (long)(pc - entry));
	victim_line(line, sizeof line);
}

static void call_stepped(const char *function)
{
	void *block = malloc(100), *other = NULL;

	steps = -1;
	__asm__ volatile("pushfq; orq %0, (%%rsp); popfq" ::"i"(TRAP_FLAG) : "memory", "cc");
	if (!strcmp(function, "realloc")) {
		block = ((void *(*)(void *, size_t))entry)(block, 300);
	} else if (!strcmp(function, "free")) {
		((void (*)(void *))entry)(block);
		block = NULL;
	} else {
		other = ((void *(*)(size_t))entry)(100);
	}
	__asm__ volatile("pushfq; andq %0, (%%rsp); popfq" ::"i"(~TRAP_FLAG) : "memory", "cc");
	free(block);
	free(other);
}

static VICTIM_FRAME void *allocate_deeper(void)
{
	char unused[200];
	void *block;

	__asm__ volatile("" ::"r"(unused) : "memory");
	block = malloc(100);
	__asm__ volatile("" ::"r"(unused) : "memory");
	return block;
}

static VICTIM_FRAME void leave_and_allocate(const char *function)
{
	static void *blocks[LEFT_BLOCKS];

	if (sigsetjmp(outside, 1) == 0)
		call_stepped(function);
	__asm__ volatile("pushfq; andq %0, (%%rsp); popfq" ::"i"(~TRAP_FLAG) : "memory", "cc");
	for (unsigned i = 0; i < LEFT_BLOCKS; i++)
		blocks[i] = allocate_deeper();
	for (unsigned i = 0; i < LEFT_BLOCKS; i++)
		free(blocks[i]);
}

static void *sleep_on(void *ready)
{
	void *volatile block = malloc(100); /* it has memory of its own from now on */

	free(block);
	sem_post(ready);
	for (;;)
		pause();
	return NULL;
}

int main(int argc, char **argv)
{
	struct sigaction step = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	static unsigned char alternate[65536];
	const stack_t stack = { .ss_sp = alternate, .ss_size = sizeof alternate };
	pthread_t sleeper;
	sem_t ready;
	char line[16];

	victim_start("entry_steps");
	if (argc != 3)
		return 64;
	entry = (uint64_t)dlsym(RTLD_DEFAULT, argv[1]);
	if (!strcmp(argv[2], "alternate"))
		sigaltstack(&stack, NULL);
	leaves = !strcmp(argv[2], "leave");
	sigaction(SIGTRAP, &step, NULL);
	sem_init(&ready, 0, 0);
	pthread_create(&sleeper, NULL, sleep_on, &ready);
	while (sem_wait(&ready) < 0)
		;
	victim_ready();
	while (victim_line(line, sizeof line) && !strncmp(line, "go ", 3)) {
		wanted = atol(line + 3);
		if (leaves)
			leave_and_allocate(argv[1]);
		else
			call_stepped(argv[1]);
		victim_round();
		victim_say("DONE");
	}
	return victim_report();
}
