/* SPDX-License-Identifier: MIT */
/* The session of test_exception.cpp: the contracts are C headers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fixture.h"

int test_session_open(void);
int test_session_close(void);
uint64_t test_session_trampoline(void *original, uint32_t hook);
uint64_t test_session_taken(void);

static struct fixture f;

int test_session_open(void)
{
	fixture_open(&f, 1, "/proc/self/exe");
	fixture_regions(&f);
	return (int)memattach_control(CONTROL_START, &f.start);
}

int test_session_close(void)
{
	return (int)(memattach_control(CONTROL_INERT, NULL) | memattach_control(CONTROL_STOP, NULL));
}

uint64_t test_session_trampoline(void *original, uint32_t hook)
{
	struct control_trampoline trampoline = { .original = (uint64_t)original, .hook = hook };
	struct control_patch patch = { .channel = -1, .trampoline_count = 1, .trampolines = (uint64_t)&trampoline };

	return memattach_control(CONTROL_PATCH, &patch)
	               ? 0
	               : trampoline_address(memattach_session.trampolines_address, 0, hook);
}

uint64_t test_session_taken(void)
{
	return fixture_counter(&f, DUMP_COUNTER_samples_taken);
}
