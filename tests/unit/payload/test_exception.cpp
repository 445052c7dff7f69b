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
int test_session_open(void);
int test_session_close(void);
uint64_t test_session_trampoline(void *original, uint32_t hook);
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

int main()
{
	int caught = 0, unwound = 0;

	if (test_session_open())
		return 1;
	auto allocate = (void *(*)(size_t))test_session_trampoline((void *)throwing_new, HOOK_new);
	for (int i = 0; i < 100; i++) {
		fail = i % 2;
		caught += attempt(allocate, &unwound);
	}
	uint64_t taken = test_session_taken();
	test_session_close();
	std::printf("caught %d, unwound %d, taken %lu\n", caught, unwound, (unsigned long)taken);
	return caught == 50 && unwound == 100 && taken == 50 ? 0 : 1;
}
