// SPDX-License-Identifier: MIT
/*
 * Code that waits for the line "go on" where no thread's registers show it, or with the address of malloc somewhere,
 * which is a trampoline's during a session, and is called through it then. Which is the first line:
 *
 *     handler  a signal handler on a stack of its own, while the address is in an ended frame of what it interrupted
 *     within   ... on a stack in a frame of what it interrupted, while the address is in a living frame below that
 *     carved   a coroutine on a stack in a frame of its thread, while the address is in a living frame below that
 *     ended    a thread has left the address on its stack, and has ended
 *     fiber    a coroutine has it on its stack
 *     malloc   a coroutine is in malloc (tests/tools/yielding_malloc.c)
 */
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "victim.h"

namespace
{

constexpr size_t stack_bytes = 256u << 10;
void *(*const volatile allocate_by_table)(size_t) = std::malloc;
char alternate[65536];
std::atomic<bool> parked, may_go_on;
ucontext_t home, away;

// Leaves the address nowhere else: it is put together from two halves.
VICTIM_FRAME void put_address(volatile uint32_t *to)
{
	const volatile uint32_t *from = reinterpret_cast<const volatile uint32_t *>(&allocate_by_table);

	to[0] = from[0];
	to[1] = from[1];
}

VICTIM_FRAME void use(volatile uint64_t *copy)
{
	unsigned char *p = static_cast<unsigned char *>(reinterpret_cast<void *(*)(size_t)>(*copy)(100));

	std::memset(p, 1, 100);
	std::free(p);
}

void wait_in_handler(int)
{
	parked = true;
	while (!may_go_on)
		usleep(1000);
}

void set_handler_on(char *stack, size_t bytes)
{
	stack_t own = {};
	struct sigaction action = {};

	own.ss_sp = stack;
	own.ss_size = bytes;
	action.sa_handler = wait_in_handler;
	action.sa_flags = SA_ONSTACK;
	if (sigaltstack(&own, nullptr) || sigaction(SIGUSR2, &action, nullptr))
		victim_wrong("no alternate stack");
}

VICTIM_FRAME void leave_copy()
{
	volatile uint32_t frame[4096];

	put_address(frame);
}

void *be_interrupted_above_copy(void *)
{
	leave_copy();
	set_handler_on(alternate, sizeof alternate);
	raise(SIGUSR2);
	return nullptr;
}

VICTIM_FRAME void be_interrupted_with_copy()
{
	volatile uint64_t copy;

	put_address(reinterpret_cast<volatile uint32_t *>(&copy));
	raise(SIGUSR2);
	use(&copy);
}

void *be_interrupted_below_handler(void *)
{
	char stack[32768];

	set_handler_on(stack, sizeof stack);
	be_interrupted_with_copy();
	return nullptr;
}

void wait_as_coroutine()
{
	wait_in_handler(0);
}

VICTIM_FRAME void start_coroutine(char *stack, size_t bytes)
{
	volatile uint64_t copy;

	put_address(reinterpret_cast<volatile uint32_t *>(&copy));
	getcontext(&away);
	away.uc_stack.ss_sp = stack;
	away.uc_stack.ss_size = bytes;
	away.uc_link = &home;
	makecontext(&away, wait_as_coroutine, 0);
	swapcontext(&home, &away);
	use(&copy);
}

void *run_coroutine_above(void *)
{
	char stack[32768];

	start_coroutine(stack, sizeof stack);
	return nullptr;
}

void *end_with_copy(void *)
{
	leave_copy();
	return nullptr;
}

void park()
{
	swapcontext(&away, &home);
}

void keep_copy()
{
	volatile uint64_t copy;

	put_address(reinterpret_cast<volatile uint32_t *>(&copy));
	park();
	use(&copy);
}

void call_malloc()
{
	constexpr size_t yielding = (16u << 20) + 4242u;
	void (**yield)() = reinterpret_cast<void (**)()>(dlsym(RTLD_DEFAULT, "yielding_malloc_yield"));

	if (!yield) {
		victim_wrong("yielding_malloc.so is not loaded");
		return;
	}
	*yield = park;
	char *volatile block = static_cast<char *>(std::malloc(yielding));
	block[0] = block[yielding - 1] = 1;
	std::free(block);
}

bool await(const char *expected)
{
	char line[32];

	return victim_line(line, sizeof line) && !std::strcmp(line, expected);
}

void park_in_thread(void *(*run)(void *), bool ends)
{
	pthread_t thread;

	if (pthread_create(&thread, nullptr, run, nullptr))
		victim_wrong("no thread");
	if (ends)
		pthread_join(thread, nullptr);
	while (!ends && !parked)
		usleep(1000);
	victim_say("PARKED");
	if (!await("go on"))
		victim_wrong("no line to go on");
	may_go_on = true;
	if (!ends)
		pthread_join(thread, nullptr);
}

void park_in_coroutine(void (*run)())
{
	getcontext(&away);
	away.uc_stack.ss_size = stack_bytes;
	away.uc_stack.ss_sp = std::malloc(stack_bytes);
	away.uc_link = &home;
	makecontext(&away, run, 0);
	swapcontext(&home, &away);
	victim_say("PARKED");
	if (!await("go on"))
		victim_wrong("no line to go on");
	swapcontext(&home, &away);
	std::free(away.uc_stack.ss_sp);
}

void park_as(const char *how)
{
	if (!std::strcmp(how, "handler"))
		park_in_thread(be_interrupted_above_copy, false);
	else if (!std::strcmp(how, "within"))
		park_in_thread(be_interrupted_below_handler, false);
	else if (!std::strcmp(how, "carved"))
		park_in_thread(run_coroutine_above, false);
	else if (!std::strcmp(how, "ended"))
		park_in_thread(end_with_copy, true);
	else if (!std::strcmp(how, "fiber"))
		park_in_coroutine(keep_copy);
	else if (!std::strcmp(how, "malloc"))
		park_in_coroutine(call_malloc);
	else
		victim_wrong("%s?", how);
}

} // namespace

int main()
{
	char line[32];

	victim_start("parked");
	victim_ready();
	while (victim_line(line, sizeof line) && std::strcmp(line, "end")) {
		park_as(line);
		victim_round();
		victim_say("WENT-ON");
	}
	raise(SIGUSR1);
	return victim_report();
}
