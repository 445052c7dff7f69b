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
uint64_t test_session_trampoline(void *original, uint32_t hook, uint32_t flags);
uint64_t test_session_taken(void);
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

/* With an original that passes on to others the hook has left a mark, which must hide nothing. */
static bool run(uint64_t rate, uint32_t flags)
{
	int caught = 0, unwound = 0;
	uint64_t taken;

	auto allocate = (void *(*)(size_t))test_session_trampoline((void *)throwing_new, HOOK_new, flags);
	auto other = (void *(*)(size_t))test_session_trampoline((void *)plain_malloc, HOOK_malloc, 0);
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
		right = run(rate, 0) && run(rate, TRAMPOLINE_OUTER) && right;
		test_session_close();
	}
	return right ? 0 : 1;
}
