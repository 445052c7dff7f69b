/* SPDX-License-Identifier: MIT */
/* A C++ exception that an original throws passes through the frames of the slow path, and the hook works on afterwards.
 */
#include <cstdio>
#include <new>

extern "C" {
#define _Static_assert static_assert
#define _Alignas alignas
#include "control.h"
#include "hooks.h"
int test_session_open(uint64_t rate);
int test_session_close(void);
uint64_t test_session_trampoline(void *original, uint32_t hook, uint32_t flags, void *quiet);
uint64_t test_session_taken(void);
uint64_t test_session_lost(void);
}

static bool fail;

struct guard {
	int *count;
	~guard()
	{
		++*count;
	}
};

static void *throwing_new(size_t bytes)
{
	static char block[4096];

	if (fail)
		throw std::bad_alloc();
	return bytes <= sizeof(block) ? block : nullptr;
}

static int attempt(void *(*allocate)(size_t), int *unwound)
{
	guard g = { unwound };

	try {
		allocate(100);
	} catch (const std::bad_alloc &) {
		return 1;
	}
	return 0;
}

static void *plain_malloc(size_t bytes)
{
	static char block[4096];

	return bytes <= sizeof(block) ? block : nullptr;
}

/* Uses so much stack that what was there below is far from its end. */
__attribute__((noinline)) static void call_from_below(void *(*allocate)(size_t))
{
	volatile char room[4096];

	room[0] = 1;
	allocate(10);
	room[1] = room[0];
}

/* The quiet function of throwing_aligned(), with its arguments in the other order. */
static size_t quiet_calls, wrong_calls;

static void *quiet_aligned(size_t alignment, size_t bytes)
{
	quiet_calls++;
	wrong_calls += alignment != 64 || bytes != 100;
	return fail ? nullptr : plain_malloc(bytes);
}

static void *called_from;

__attribute__((noinline)) static void *throwing_aligned(size_t bytes, size_t alignment)
{
	called_from = __builtin_return_address(0);
	wrong_calls += alignment != 64 || bytes != 100;
	return throwing_new(bytes);
}

__attribute__((noinline)) static int attempt_aligned(void *(*allocate)(size_t, size_t))
{
	try {
		return allocate(100, 64) == nullptr;
	} catch (const std::bad_alloc &) {
		return 2;
	}
}

/* A function that has a quiet one is never called with a frame of the payload: it returns to its caller, and what it
 * gives after its new_handler is lost. */
static bool run_quiet(uint64_t rate)
{
	auto allocate = (void *(*)(size_t, size_t))test_session_trampoline(
		(void *)throwing_aligned, HOOK_new_aligned, TRAMPOLINE_QUIET_ALIGNED, (void *)quiet_aligned);
	uint64_t before = test_session_taken(), lost_before = test_session_lost();
	int caught = 0, from_elsewhere = 0;

	fail = false;
	quiet_calls = wrong_calls = 0;
	attempt_aligned(throwing_aligned);
	void *const caller = called_from;
	for (int i = 0; i < 100; i++) {
		fail = i % 2;
		caught += attempt_aligned(allocate);
		from_elsewhere += called_from != caller;
	}
	uint64_t taken = test_session_taken() - before, lost = test_session_lost() - lost_before;
	std::printf("rate %lu, quiet: caught %d, calls %zu, wrong %zu, from elsewhere %d, taken %lu, lost %lu\n",
	            (unsigned long)rate, caught, quiet_calls, wrong_calls, from_elsewhere, (unsigned long)taken,
	            (unsigned long)lost);
	return caught == 100 && !wrong_calls && !from_elsewhere && quiet_calls >= taken + lost &&
	       (rate > 1 || (taken == 50 && lost == 50 && quiet_calls == 100));
}

/* With an original that passes on to others the hook has left a mark, which must hide nothing. */
static bool run(uint64_t rate, uint32_t flags)
{
	int caught = 0, unwound = 0;
	uint64_t taken;

	auto allocate = (void *(*)(size_t))test_session_trampoline((void *)throwing_new, HOOK_new, flags, nullptr);
	auto other = (void *(*)(size_t))test_session_trampoline((void *)plain_malloc, HOOK_malloc, 0, nullptr);
	uint64_t before = test_session_taken();
	for (int i = 0; i < 100; i++) {
		fail = i % 2;
		caught += attempt(allocate, &unwound);
		call_from_below(other);
	}
	taken = test_session_taken() - before;
	std::printf("rate %lu, flags %u: caught %d, unwound %d, taken %lu\n", (unsigned long)rate, flags, caught,
	            unwound, (unsigned long)taken);
	return caught == 50 && unwound == 100 && (rate > 1 || taken == 150);
}

int main()
{
	bool right = true;

	for (uint64_t rate = 1; rate <= 1000; rate *= 1000) {
		if (test_session_open(rate))
			return 1;
		right = run(rate, 0) && run(rate, TRAMPOLINE_OUTER) && run_quiet(rate) && right;
		test_session_close();
	}
	return right ? 0 : 1;
}
