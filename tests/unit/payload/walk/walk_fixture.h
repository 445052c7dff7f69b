/* SPDX-License-Identifier: MIT */
/* A made-up stack and a made-up module, for tests of the walk. */
#pragma once

#include "fixture.h"
#include "walk/unwind.h"

/* A module at CODE whose function number i covers 16 bytes and has rules[i]; return addresses point into its middle. */
#define CODE 0x10000000ull
#define PC(i) (CODE + 16 * (uint64_t)(i) + 8)
#define WORDS 4096

extern struct fixture fixture;
extern uint64_t stack[WORDS];
extern uint64_t frames[DUMP_FRAMES_MAX]; /* of the last walk */
extern struct unwind_result result;

int open_session(void **state);
int close_session(void **state);
#define SESSION_TEST(name) cmocka_unit_test_setup_teardown(name, open_session, close_session)

/* The address of a word of the stack. */
uint64_t at(uint32_t word);
/* The module has these rules, and the array is the main stack. */
void publish(const uint32_t *rules, uint32_t count);
/* What a C library notes at NOTED_AT after the thread pointer; the stack begins with the array. */
#define NOTED_AT 32
void make_control_block(uint64_t thread_pointer);
void walk(uint32_t word, uint64_t fp);
void assert_frame(uint32_t i, uint64_t pc);
