// SPDX-License-Identifier: MIT
/*
 * Each allocation function in each way in which one of them may call another, again and again. After the line "go" on
 * stdin; then it prints TRUTH and a JSON object, and waits for the line "end". Its own count is taken at each call.
 * With the argument "throw", operator new also fails now and then, with each kind of new_handler, and may allocate an
 * exception, which is not counted.
 */
#include "victim.h"

#include <malloc.h>
#include <new>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 1000u
#define KEPT (ROUNDS * 24)

static void *kept[KEPT];
static unsigned kept_count;
static uint64_t live_bytes, allocated_bytes, allocated_count;

/* A block that goes at once. */
static void *passing(void *block, size_t bytes)
{
	if (!block)
		victim_wrong("no memory for %zu bytes", bytes);
	allocated_count++;
	allocated_bytes += bytes;
	return block;
}

static void keep(void *block, size_t bytes)
{
	kept[kept_count++] = passing(block, bytes);
	live_bytes += bytes;
}

static void *aligned(size_t alignment, size_t bytes)
{
	void *block = NULL;

	if (posix_memalign(&block, alignment, bytes))
		victim_wrong("posix_memalign failed");
	return block;
}

static VICTIM_FRAME void round_of(unsigned i)
{
	keep(malloc(70 + i), 70 + i);
	keep(calloc(3, 50), 150);
	keep(realloc(NULL, 100 + i), 100 + i);
	keep(reallocarray(NULL, 7, 11), 77);
	keep(aligned(64, 200), 200);
	keep(aligned(16, 210), 210);
	keep(memalign(8, 33), 33);
	keep(memalign(4096, 44), 44);
	keep(aligned_alloc(32, 64), 64);
	keep(valloc(77), 77);
	keep(pvalloc(4096), 4096);
	keep(operator new(90), 90);
	keep(operator new[](91), 91);
	keep(operator new(92, std::nothrow), 92);
	keep(operator new[](93, std::nothrow), 93);
	keep(operator new(128, std::align_val_t(64)), 128);
	void *block = passing(malloc(10), 10);
	block = passing(realloc(block, 1000), 1000);
	block = passing(realloc(block, 900), 900);
	keep(realloc(block, 200000), 200000);
	free(passing(malloc(12), 12));
	free(passing(realloc(passing(malloc(33), 33), 300000), 300000));
	operator delete(passing(operator new(34), 34));
	operator delete[](passing(operator new[](35), 35));
	operator delete(passing(operator new(36), 36), 36);
	free(NULL);
}

static unsigned handled;
static jmp_buf outside;

static void gives_up_later(void)
{
	if (++handled == 3)
		std::set_new_handler(NULL);
}

static void throws_a_number(void)
{
	throw(int)++ handled;
}

static void leaves(void)
{
	handled++;
	longjmp(outside, 1);
}

/* Leaves operator new without a block, which is seen in `caught`: 1 bad_alloc, 2 a number. */
static VICTIM_FRAME int attempt(bool aligned)
{
	const size_t bytes = ~(size_t)0 >> 2;

	try {
		keep(aligned ? operator new(bytes, std::align_val_t(64)) : operator new(bytes), 0);
		victim_wrong("there was memory for 4 EiB");
	} catch (const std::bad_alloc &) {
		return 1;
	} catch (int) {
		return 2;
	}
	return 0;
}

static void check_attempt(void (*handler)(void), bool aligned, unsigned calls, int caught)
{
	volatile int was = 0;

	handled = 0;
	std::set_new_handler(handler);
	if (setjmp(outside) == 0)
		was = attempt(aligned);
	std::set_new_handler(NULL);
	if (handled != calls || was != caught)
		victim_wrong("the new_handler was called %u times, not %u; %d was caught, not %d", handled, calls, was,
		             caught);
}

/* The mark of a call that throws must not hide those that come after it. */
static VICTIM_FRAME void fail(void)
{
	check_attempt(NULL, false, 0, 1);
	check_attempt(NULL, true, 0, 1);
	check_attempt(gives_up_later, false, 3, 1);
	check_attempt(throws_a_number, false, 1, 2);
	check_attempt(leaves, false, 1, 0);
}

int main(int argc, char **argv)
{
	char line[64];

	bool throws = argc > 1 && !strcmp(argv[1], "throw");

	victim_start("all_functions");
	if (throws)
		fail(); /* the first exception of a static program makes tables, which stay */
	victim_ready();
	victim_line(line, sizeof line);
	for (unsigned i = 0; i < ROUNDS; i++) {
		round_of(i);
		if (throws && i % 100 == 0)
			fail();
	}
	victim_say("TRUTH {\"function\":\"all\",\"live_count\":%u,\"live_bytes\":%llu,\"allocated_count\":%llu,"
	           "\"allocated_bytes\":%llu}",
	           kept_count, (unsigned long long)live_bytes, (unsigned long long)allocated_count,
	           (unsigned long long)allocated_bytes);
	victim_say("TRUTH-END");
	victim_line(line, sizeof line);
	victim_round();
	return victim_report();
}
