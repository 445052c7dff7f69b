/* SPDX-License-Identifier: MIT */
/*
 * No Python, but a variable _PyRuntime, and what else tells of an interpreter; built with several claims about its
 * version (CLAIM_…). Its words are noise, most of them addresses of one another, and written anew all the time.
 */
#include "victim.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#define WORDS 65536u /* of the runtime and all that it leads to */
#define SMALL 300u   /* numbers below it are as likely as addresses: lengths, offsets, flags */

#ifdef CLAIM_SECTION
#define EXPORTED static __attribute__((section(".PyRuntime"), used))
#else
#define EXPORTED
#endif

EXPORTED struct {
	char cookie[8];
	uint64_t version, free_threaded;
	volatile uint64_t words[WORDS];
} _PyRuntime = { CLAIM_COOKIE, CLAIM_HEX, CLAIM_FREE_THREADED, { 1 } };

#ifndef CLAIM_SECTION
extern const unsigned long Py_Version;
const unsigned long Py_Version = CLAIM_HEX;
#endif

/* Constant data of an interpreter. */
extern const char *const python_texts[];
const char *const python_texts[] = { ".cpython-" CLAIM_SUFFIX "-x86_64-linux-gnu.so", CLAIM_TEXT };

static uint64_t noise(uint64_t *random)
{
	uint64_t x = victim_random(random);

	switch (x % 4) {
	case 0: return x >> 8 & 1;
	case 1: return (x >> 8) % SMALL;
	default: return (uint64_t)(uintptr_t)&_PyRuntime.words[(x >> 8) % WORDS];
	}
}

static void *scribble(void *unused)
{
	uint64_t random = 1;

	while (!victim_done()) {
		_PyRuntime.words[victim_random(&random) % WORDS] = noise(&random);
		victim_round();
	}
	return unused;
}

int main(void)
{
	uint64_t random = 1;
	pthread_t thread;

	victim_start("python_impostor");
	for (unsigned i = 0; i < WORDS; i++)
		_PyRuntime.words[i] = noise(&random);
	pthread_create(&thread, NULL, scribble, NULL);
	victim_ready();
	pthread_join(thread, NULL);
	return victim_report();
}
