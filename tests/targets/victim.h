/* SPDX-License-Identifier: MIT */
/*
 * What the victims share. A victim computes something whose answer it knows, checks itself each round, and talks to the
 * test in lines on stdout:
 *
 *     PID n                    first line
 *     READY                    it does its special thing now
 *     WRONG text               something is not as it must be (it goes on)
 *     OK name rounds=N         last line, exit 0; or FAILED name errors=N, exit 1
 *
 * SIGUSR1 means: finish the round, report, exit. A victim dies with its parent, so that no test leaves one after.
 * Nothing here allocates after the start, so that a victim's heap is only what it says.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void victim_start(const char *name);
/* Prints READY. */
void victim_ready(void);
/* SIGUSR1 has come. */
bool victim_done(void);
/* One round has been checked and was right. May be called by any thread. */
void victim_round(void);
/* Prints a line WRONG and makes the exit code 1. May be called by any thread and by a signal handler. */
void victim_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints one line and a newline, at once. */
void victim_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints the last line; returns main's return value. */
int victim_report(void);
/* Reads one line of stdin, without its newline; false at the end or after SIGUSR1. */
bool victim_line(char *line, size_t size);

uint64_t victim_monotonic_ns(void);
/* xorshift: a new state from the old, never 0 if the old one is not. */
static inline uint64_t victim_random(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *state = x;
}

/* Allocates a block, fills it, checks each byte of it and frees it: for victims whose heap is not compared. May be
 * called by any thread. */
void victim_block(uint64_t *random);
/* READY, and rounds of such blocks until SIGUSR1 comes; returns main's return value. */
static inline int victim_blocks(void)
{
	uint64_t random = 88172645463325252ull;

	victim_ready();
	while (!victim_done()) {
		for (unsigned i = 0; i < 100; i++)
			victim_block(&random);
		victim_round();
	}
	return victim_report();
}

/* Keep the function's frame: called by name in reports. */
#define VICTIM_FRAME __attribute__((noinline, noclone))

#ifdef __cplusplus
}
#endif
