/* SPDX-License-Identifier: MIT */
/*
 * What the payload adds to a malloc/free pair: calls through the original's address and through a trampoline of the
 * shared object as it is shipped, in one process, in turns of short slices. Then what one warm sample costs, with a
 * stack of some 30 frames, by the cycle counter. And how much of that the payload does not see when it counts the
 * cycles of its slow path: the governor adds that (OUTSIDE_NS in injector/session/rate_control.c). Each is a session
 * with a rate of its own.
 *
 *     payload_pair [rate_bytes [pairs]]
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "control.h"
#include "fixture.h"
#include "hooks.h"

#define ROUNDS 7
#define FRAMES 30
#define SLICE 10000 /* pairs, some 0.2 ms: most slices are not disturbed by other programs */

static uint64_t pair_count = 40000000;
static void *(*volatile allocate)(size_t);
static void (*volatile release)(void *);
static void *(*hooked_malloc)(size_t);
static void (*hooked_free)(void *);

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double pair_ns(uint64_t pairs)
{
	double start = now_ns();

	for (uint64_t i = 0; i < pairs; i++)
		release(allocate(32));
	return (now_ns() - start) / (double)pairs;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts them. */
static double quantile(double *values, uint64_t count, double q)
{
	qsort(values, count, sizeof(*values), compare);
	return values[(uint64_t)((double)count * q)];
}

static double smaller(double a, double b)
{
	return a < b ? a : b;
}

static __attribute__((noinline)) double pairs_below(int frames, uint64_t pairs)
{
	double ns;

	if (frames == 0)
		return pair_ns(pairs);
	ns = pairs_below(frames - 1, pairs);
	__asm__ volatile("" : : : "memory");
	return ns;
}

static int64_t (*control)(uint64_t op, void *argument);
static struct memattach_session *session;

static void load(void)
{
	void *handle = dlopen(PAYLOAD_PATH, RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		fprintf(stderr, "payload_pair: %s\n", dlerror());
		exit(1);
	}
	*(void **)&control = dlsym(handle, "memattach_control");
	session = dlsym(handle, "memattach_session");
}

/* This program is compiled with frame pointers: one rule is right for all of it. */
static void give_rows(struct fixture *f)
{
	const struct unwind_header *header = (const struct unwind_header *)f->tables;
	struct unwind_index *index = (struct unwind_index *)(f->tables + header->index_offset);
	struct unwind_module *module = (struct unwind_module *)(index + 1);
	const uint32_t pc = 0, rule = UNWIND_RULE(UNWIND_FP, 16, 2);

	module->rows_offset = fixture_rows(f, &pc, &rule, 1);
	module->row_count = 1;
}

static void inspect_open(struct fixture *f, uint64_t rate_bytes)
{
	struct control_trampoline trampolines[] = {
		{ .original = (uint64_t)malloc, .hook = HOOK_malloc },
		{ .original = (uint64_t)free, .hook = HOOK_free },
	};
	struct control_patch patch = { .trampoline_count = 2, .trampolines = (uint64_t)trampolines };

	fixture_open(f, rate_bytes, PAYLOAD_PATH);
	fixture_regions(f);
	fixture_index_self(f, 1);
	give_rows(f);
	if (control(CONTROL_START, &f->start) || control(CONTROL_PATCH, &patch)) {
		fprintf(stderr, "payload_pair: no session\n");
		exit(1);
	}
	hooked_malloc = (void *(*)(size_t))trampoline_address(session->trampolines_address, 0, HOOK_malloc);
	hooked_free = (void (*)(void *))trampoline_address(session->trampolines_address, 1, HOOK_free);
	allocate = hooked_malloc;
	release = hooked_free;
}

static void session_close(struct fixture *f)
{
	fixture_inert(session);
	control(CONTROL_STOP, NULL);
	fixture_close(f);
}

/* Returns the fastest tenth of the plain pairs, in ns. */
static double put_added(uint64_t rate_bytes)
{
	uint64_t slices = pair_count / SLICE + 1;
	double *plain = calloc(slices, sizeof(*plain)), *hooked = calloc(slices, sizeof(*hooked)), fastest;
	struct fixture f;

	inspect_open(&f, rate_bytes);
	for (uint64_t i = 0; i < slices; i++) {
		allocate = malloc;
		release = free;
		plain[i] = pairs_below(FRAMES, SLICE);
		allocate = hooked_malloc;
		release = hooked_free;
		hooked[i] = pairs_below(FRAMES, SLICE);
	}
	session_close(&f);
	for (double q = 0.1; q < 0.6; q += 0.4) {
		double p = quantile(plain, slices, q), h = quantile(hooked, slices, q);

		printf("malloc/free pair, %s: plain %.2f ns, hooked at %lu bytes %.2f ns, added %.2f ns\n",
		       q < 0.4 ? "fastest tenth" : "median", p, rate_bytes, h, h - p);
	}
	fastest = quantile(plain, slices, 0.1);
	free(plain);
	free(hooked);
	return fastest;
}

static void put_sampled(double plain)
{
	uint64_t walked, taken;
	double exact = 1e9;
	struct fixture f;

	inspect_open(&f, 1);
	pairs_below(FRAMES, 1000);
	walked = fixture_counter(&f, DUMP_COUNTER_frames_walked);
	taken = fixture_counter(&f, DUMP_COUNTER_samples_taken);
	for (int i = 0; i < ROUNDS; i++)
		exact = smaller(exact, pairs_below(FRAMES, pair_count / 100));
	walked = fixture_counter(&f, DUMP_COUNTER_frames_walked) - walked;
	taken = fixture_counter(&f, DUMP_COUNTER_samples_taken) - taken;
	session_close(&f);
	printf("sampled pair: %.0f ns with %.1f frames, allocation and free and history\n", exact - plain,
	       (double)walked / (double)taken);
}

/*
 * At two bytes nearly every block of 32 is sampled, and each is timed as at any larger rate. Of several rounds the one
 * that was disturbed least.
 */
static void put_outside(double plain)
{
	double ns = 1e9, outside = 0;
	struct fixture f;

	inspect_open(&f, 2);
	pairs_below(FRAMES, 1000);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t calls = fixture_counter(&f, DUMP_COUNTER_samples_taken) +
		                 fixture_counter(&f, DUMP_COUNTER_samples_freed);
		uint64_t cycles = fixture_counter(&f, DUMP_COUNTER_slow_cycles);
		uint64_t begin = __builtin_ia32_rdtsc(), pairs = pair_count / 100;
		double start = now_ns(), pair = pairs_below(FRAMES, pairs);
		double per_cycle = (now_ns() - start) / (double)(__builtin_ia32_rdtsc() - begin);
		calls = fixture_counter(&f, DUMP_COUNTER_samples_taken) +
		        fixture_counter(&f, DUMP_COUNTER_samples_freed) - calls;
		cycles = fixture_counter(&f, DUMP_COUNTER_slow_cycles) - cycles;
		if (pair < ns && calls) {
			ns = pair;
			outside = ((pair - plain) * (double)pairs - (double)cycles * per_cycle) / (double)calls;
		}
	}
	session_close(&f);
	printf("outside of what the payload times: %.0f ns of each sample and of each of their frees\n", outside);
}

int main(int argc, char **argv)
{
	uint64_t rate_bytes = argc > 1 ? strtoull(argv[1], NULL, 0) : 512 << 10;
	double plain;

	if (argc > 2)
		pair_count = strtoull(argv[2], NULL, 0);
	load();
	plain = put_added(rate_bytes);
	put_sampled(plain);
	put_outside(plain);
	return 0;
}
