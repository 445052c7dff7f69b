/* SPDX-License-Identifier: MIT */
/*
 * Every hook after a trampoline of its own, with an original that notes what it gets and answers what the test wants;
 * in each of the places where a thread's state may be.
 */
#pragma once

#include "fixture.h"
#include "hooks.h"

extern struct fixture fixture;
extern uint64_t seen[6];     /* the arguments of the original's last call */
extern uint64_t answer;      /* what it returns */
extern uint64_t out_value;   /* what SHAPE_OUT stores */
extern bool store_out;       /* whether it does */
extern void (*inside)(void); /* runs in the original */

struct hook_fact {
	const char *name;
	int shape;
	int size;
};
extern const struct hook_fact facts[]; /* by enum hook_id */

/* Which state this thread will find: the near one, the one of its hash, or one after that. */
enum place { NEAR, HOME, BEHIND };
extern enum place place;

/* Its address, and a call through it. */
uint64_t trampoline(uint32_t hook);
uint64_t call(uint32_t hook, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t g);
/* As memattach does it. */
void order_rate(uint64_t rate);
/* The next call draws with the new rate, however far its sample was away. */
void order_at_once(uint64_t rate);
void start(uint64_t rate, bool with_regions);
int open_exact(void **state);
int open_exact_at_home(void **state);
int open_exact_behind(void **state);
int close_session(void **state);

#define EXACT(name) cmocka_unit_test_setup_teardown(name, open_exact, close_session)
#define EXACT_IN_EACH_STATE(name)                                                                                      \
	EXACT(name), { #name "_at_home", name, open_exact_at_home, close_session, NULL },                              \
	{                                                                                                              \
#name "_behind", name, open_exact_behind, close_session, NULL                                          \
	}
