/* SPDX-License-Identifier: MIT */
/* See hook_fixture.h. */
#include "hook_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "arch/machine.h"
#include "trampoline_setup.h"
#include "lost_owners.h"
#include "thread_state.h"

typedef uint64_t (*hooked)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

struct fixture fixture;
uint64_t seen[6];
uint64_t answer;
uint64_t out_value;
bool store_out;
void (*inside)(void);

const struct hook_fact facts[] = {
#define FACT(id, symbol, shape, size, group) { symbol, shape, size },
	HOOK_LIST(FACT)
};

static uint64_t original(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t g)
{
	const uint64_t got[6] = { a, b, c, d, e, g };

	memcpy(seen, got, sizeof(seen));
	if (store_out)
		*(uint64_t *)a = out_value;
	if (inside)
		inside();
	return answer;
}

uint64_t trampoline(uint32_t hook)
{
	return trampoline_address(memattach_session.trampolines_address, hook, hook);
}

uint64_t call(uint32_t hook, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t g)
{
	return ((hooked)trampoline(hook))(a, b, c, d, e, g);
}

enum place place;

static void give_other_states_away(void)
{
	uint64_t tp = arch_thread_pointer(), home = (tp ^ tp >> THREAD_STATE_FOLD) >> THREAD_STATE_SHIFT;

	if (place >= HOME)
		trampolines_shared->near.owner = trampolines_shared->near_owner = 1;
	if (place == BEHIND)
		thread_states[home % THREAD_STATE_COUNT].owner = 1;
}

void order_rate(uint64_t rate)
{
	__atomic_store_n(&fixture.dump->rate_bytes, rate, __ATOMIC_RELAXED);
}

void order_at_once(uint64_t rate)
{
	order_rate(rate);
	lose_owners();
	give_other_states_away();
}

void start(uint64_t rate, bool with_regions)
{
	struct control_trampoline trampolines[HOOK_COUNT];
	struct control_patch patch = { .trampoline_count = HOOK_COUNT, .trampolines = (uint64_t)trampolines };

	for (uint32_t i = 0; i < HOOK_COUNT; i++)
		trampolines[i] = (struct control_trampoline){ .original = (uint64_t)original, .hook = i };
	fixture_open(&fixture, rate, "/proc/self/exe");
	if (with_regions)
		fixture_regions(&fixture);
	assert_int_equal(memattach_control(CONTROL_START, &fixture.start), 0);
	assert_int_equal(memattach_control(CONTROL_PATCH, &patch), 0);
	give_other_states_away();
	store_out = false;
	inside = NULL;
	answer = 0;
}

int open_exact(void **state)
{
	(void)state;
	place = NEAR;
	start(1, true);
	return 0;
}

int open_exact_at_home(void **state)
{
	(void)state;
	place = HOME;
	start(1, true);
	return 0;
}

int open_exact_behind(void **state)
{
	(void)state;
	place = BEHIND;
	start(1, true);
	return 0;
}

int close_session(void **state)
{
	(void)state;
	inside = NULL;
	place = NEAR;
	fixture_inert(&memattach_session);
	assert_int_equal(memattach_control(CONTROL_STOP, NULL), 0);
	munmap((void *)memattach_session.trampolines_address, memattach_session.trampolines_bytes);
	fixture_close(&fixture);
	return 0;
}
