/* SPDX-License-Identifier: MIT */
/*
 * The address of a hook in the saved registers of a signal frame on an alternate stack, as when the signal had come
 * there. The line "put" makes it, argument 1 says how:
 *
 *     dead     the handler has returned: nobody will ever read the frame
 *     left     the handler was left by swapcontext: at the line "back" it goes on, and returns by that frame
 *     plain    on the same stack, but in no frame: a copy like any other
 *
 * It is answered by "PUT" and where the address is.
 */
#include "victim.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK_BYTES (64u << 10)

static const char *mode;
static char *stack;
static volatile greg_t *saved_pc;
static ucontext_t home, handler_context;

/* The table holds the address of the hook during a session; no register or stack shall hold it whole. */
static void *(*const volatile allocate_by_table)(size_t) = malloc;

static VICTIM_FRAME void put_address(volatile uint32_t *to)
{
	const volatile uint32_t *from = (const volatile uint32_t *)&allocate_by_table;

	to[0] = from[0];
	to[1] = from[1];
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;
	greg_t true_pc = interrupted->uc_mcontext.gregs[REG_RIP];

	(void)number, (void)info;
	saved_pc = &interrupted->uc_mcontext.gregs[REG_RIP];
	if (strcmp(mode, "left") != 0)
		return;
	put_address((volatile uint32_t *)saved_pc);
	swapcontext(&handler_context, &home);
	*saved_pc = true_pc;
}

static void take_signal(void)
{
	raise(SIGUSR2);
}

/* The signal comes on a stack of its own: the frame of raise must still be there when a handler that was left returns
 * to it. */
static void put(void)
{
	static char raiser_stack[STACK_BYTES];
	static ucontext_t raiser;
	volatile uint32_t *at;

	getcontext(&raiser);
	raiser.uc_stack.ss_sp = raiser_stack;
	raiser.uc_stack.ss_size = sizeof raiser_stack;
	raiser.uc_link = &home;
	makecontext(&raiser, take_signal, 0);
	swapcontext(&home, &raiser);
	at = strcmp(mode, "plain") ? (volatile uint32_t *)saved_pc : (volatile uint32_t *)(stack + 64);
	if (strcmp(mode, "left") != 0)
		put_address(at);
	victim_say("PUT %" PRIxPTR, (uintptr_t)at);
}

static void come_back(void)
{
	if (!strcmp(mode, "left"))
		swapcontext(&home, &handler_context);
	victim_say("BACK");
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	char line[32];

	victim_start("frames");
	if (argc < 2)
		return 2;
	mode = argv[1];
	stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t alternate = { .ss_sp = stack, .ss_size = STACK_BYTES };
	if (stack == MAP_FAILED || sigaltstack(&alternate, NULL) || sigaction(SIGUSR2, &action, NULL)) {
		victim_wrong("%s", strerror(errno));
		return 2;
	}
	void *volatile block = allocate_by_table(10);
	free(block);
	victim_ready();
	while (victim_line(line, sizeof line) && strcmp(line, "end") != 0) {
		if (!strcmp(line, "put"))
			put();
		else if (!strcmp(line, "back"))
			come_back();
		victim_round();
	}
	return victim_report();
}
