/* SPDX-License-Identifier: MIT */
/* The session of test_exception.cpp: the contracts are C headers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fixture.h"

int test_session_open(uint64_t rate);
int test_session_close(void);
uint64_t test_session_trampoline(void *original, uint32_t hook, uint32_t flags, void *quiet);
uint64_t test_session_taken(void);
uint64_t test_session_lost(void);

static struct fixture f;

int test_session_open(uint64_t rate)
{
	fixture_open(&f, rate, "/proc/self/exe");
	fixture_regions(&f);
	return (int)memattach_control(CONTROL_START, &f.start);
}

int test_session_close(void)
{
	fixture_inert(&memattach_session);
	return (int)memattach_control(CONTROL_STOP, NULL);
}

uint64_t test_session_trampoline(void *original, uint32_t hook, uint32_t flags, void *quiet)
{
	static struct control_trampoline trampolines[16];
	static uint32_t count;
	struct control_patch patch = { .trampolines = (uint64_t)trampolines };

	trampolines[count] = (struct control_trampoline){
		.original = (uint64_t)original, .hook = hook, .flags = flags, .quiet = (uint64_t)quiet
	};
	patch.trampoline_count = ++count;
	if (memattach_control(CONTROL_PATCH, &patch))
		return 0;
	uint64_t at = trampoline_address(memattach_session.trampolines_address, count - 1, hook);
	return flags & TRAMPOLINE_OUTER ? at - TRAMPOLINE_ENTRANCE(SHAPE_ALLOC, SIZE_ARG0) + TRAMPOLINE_OTHER : at;
}

uint64_t test_session_taken(void)
{
	return fixture_counter(&f, DUMP_COUNTER_samples_taken);
}

uint64_t test_session_lost(void)
{
	return fixture_counter(&f, DUMP_COUNTER_lost_busy);
}
