/* SPDX-License-Identifier: MIT */
/*
 * Every hook called through a gate of its own, with originals that check what they get: arguments and results pass
 * unchanged, the dump holds what the shape of the function says. Also: patching of words, signal handlers, changes of
 * the rate.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "arch.h"
#include "filter.h"
#include "fixture.h"
#include "gate.h"
#include "hooks.h"
#include "lost_owners.h"
#include "payload.h"
#include "thread_slot.h"

typedef uint64_t (*hooked)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

static struct fixture f;
static uint64_t seen[6];
static uint64_t answer;
static uint64_t out_value; /* what SHAPE_OUT stores */
static bool store_out;
static void (*inside)(void); /* runs in the original */

static const struct {
	const char *name;
	int shape;
	int size;
} facts[] = {
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

static uint64_t gate(uint32_t hook)
{
	return gate_address(memattach_session.gates_address, hook, hook);
}

static uint64_t call(uint32_t hook, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t g)
{
	return ((hooked)gate(hook))(a, b, c, d, e, g);
}

/* Which slot this thread will find: the near one, the one of its hash, or one behind that. */
static enum { NEAR, HOME, BEHIND } place;

static void give_other_slots_away(void)
{
	uint64_t tp = arch_thread_pointer(), home = (tp ^ tp >> THREAD_SLOT_FOLD) >> THREAD_SLOT_SHIFT;

	if (place >= HOME)
		gates_shared->near.owner = gates_shared->near_owner = 1;
	if (place == BEHIND)
		thread_slots[home % THREAD_SLOT_COUNT].owner = 1;
}

static void order_rate(uint64_t rate)
{
	__atomic_store_n(&f.dump->rate_bytes, rate, __ATOMIC_RELAXED);
}

/* The next call draws with the new rate, however far its sample was away. */
static void order_at_once(uint64_t rate)
{
	order_rate(rate);
	lose_owners();
	give_other_slots_away();
}

static void start(uint64_t rate, bool with_regions)
{
	struct control_gate gates[HOOK_COUNT];
	struct control_patch patch = { .channel = -1, .gate_count = HOOK_COUNT, .gates = (uint64_t)gates };

	for (uint32_t i = 0; i < HOOK_COUNT; i++)
		gates[i] = (struct control_gate){ .original = (uint64_t)original, .hook = i };
	fixture_open(&f, rate, "/proc/self/exe");
	if (with_regions)
		fixture_regions(&f);
	assert_int_equal(memattach_control(CONTROL_START, &f.start), 0);
	assert_int_equal(memattach_control(CONTROL_PATCH, &patch), 0);
	give_other_slots_away();
	store_out = false;
	inside = NULL;
	answer = 0;
}

static int open_exact(void **state)
{
	(void)state;
	place = NEAR;
	start(1, true);
	return 0;
}

static int open_exact_at_home(void **state)
{
	(void)state;
	place = HOME;
	start(1, true);
	return 0;
}

static int open_exact_behind(void **state)
{
	(void)state;
	place = BEHIND;
	start(1, true);
	return 0;
}

static int close_session(void **state)
{
	(void)state;
	inside = NULL;
	place = NEAR;
	assert_int_equal(memattach_control(CONTROL_INERT, NULL), 0);
	assert_int_equal(memattach_control(CONTROL_STOP, NULL), 0);
	munmap((void *)memattach_session.gates_address, memattach_session.gates_bytes);
	fixture_close(&f);
	return 0;
}

/* All six arguments and the result, on the fast and the slow path, for each hook. */
static void test_hook_passes_arguments_and_result(void **state)
{
	const uint64_t every = 1, seldom = 1ull << 30;
	uint64_t word;

	(void)state;
	for (uint32_t i = 0; i < HOOK_COUNT; i++) {
		for (int slow = 0; slow < 2; slow++) {
			uint64_t first = (uint64_t)&word, wanted[] = { first, 20 + i, 30 + i, 0x22, 50 + i, 60 + i };

			order_at_once(slow ? every : seldom);
			answer = facts[i].shape == SHAPE_OUT ? 0x1100000000ull + (uint32_t)EINVAL
			                                     : 0x7000000 + 4096 * i;
			memset(seen, 0, sizeof(seen));
			assert_int_equal(call(i, first, 20 + i, 30 + i, 0x22, 50 + i, 60 + i), answer);
			assert_memory_equal(seen, wanted, sizeof(seen));
		}
	}
}

static uint64_t size_of(uint32_t hook, const uint64_t *a)
{
	switch (facts[hook].size) {
	case SIZE_ARG0: return a[0];
	case SIZE_ARG1: return a[1];
	case SIZE_ARG2: return a[2];
	case SIZE_ARG0_X_ARG1: return a[0] * a[1];
	default: return a[1] * a[2];
	}
}

/* What makes blocks makes a record with the size that was asked for; a failure makes none. */
static void test_hook_records_new_blocks(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < HOOK_COUNT; i++) {
		uint64_t block = 0x10000000 + 4096ull * i, out = 0;
		uint64_t a[4] = { 40, 50, 60, MAP_ANONYMOUS };
		struct dump_live_record record;
		uint64_t taken = fixture_counter(&f, DUMP_COUNTER_samples_taken);

		if (facts[i].shape == SHAPE_FREE || facts[i].shape == SHAPE_UNMAP || facts[i].shape == SHAPE_RESIZE)
			continue;
		if (facts[i].shape == SHAPE_OUT)
			a[0] = (uint64_t)&out;
		store_out = facts[i].shape == SHAPE_OUT;
		answer = store_out                                                      ? ENOMEM
		         : facts[i].shape == SHAPE_MAP || facts[i].shape == SHAPE_REMAP ? UINT64_MAX
		                                                                        : 0;
		out_value = block;
		call(i, a[0], a[1], a[2], a[3], 0, 0);
		assert_int_equal(fixture_counter(&f, DUMP_COUNTER_samples_taken), taken);
		answer = store_out ? 0 : block;
		call(i, a[0], a[1], a[2], a[3], 0, 0);
		store_out = false;
		if (!fixture_live(&f, (void *)block, &record))
			fail_msg("%s: no record", facts[i].name);
		assert_int_equal(record.hook, i);
		assert_int_equal(record.size, size_of(i, a));
		assert_int_equal(fixture_counter(&f, DUMP_COUNTER_samples_taken), taken + 1);
	}
}

static void make(uint64_t block, uint64_t size)
{
	answer = block;
	call(HOOK_malloc, size, 0, 0, 0, 0, 0);
	assert_true(fixture_live(&f, (void *)block, NULL));
}

static uint64_t watched;

/* As another thread to which the allocator gives the block while the original still works. */
static void get_it_again(void)
{
	inside = NULL;
	answer = watched;
	call(HOOK_malloc, 20, 0, 0, 0, 0, 0);
}

/* The block that a free is about may be somebody else's before the original returns: each of the two has its own
 * record. */
static void test_hook_leaves_the_next_block_alone(void **state)
{
	struct dump_live_record record;
	struct dump_history_record past;
	uint64_t freed = 0;

	(void)state;
	watched = 0x5550;
	for (uint32_t i = 0; i < HOOK_COUNT; i++) {
		if (facts[i].shape != SHAPE_FREE && facts[i].shape != SHAPE_UNMAP)
			continue;
		make(watched, 10);
		inside = get_it_again;
		call(i, watched, 1, 2, 3, 4, 5);
		assert_null(inside);
		assert_true(fixture_live(&f, (void *)watched, &record));
		assert_int_equal(record.size, 20);
		assert_true(fixture_history(&f, freed++, &past));
		assert_int_equal(past.size, 10);
		call(HOOK_free, watched, 0, 0, 0, 0, 0);
		assert_int_equal(fixture_live_count(&f), 0);
		assert_true(fixture_history(&f, freed++, &past));
		assert_int_equal(past.size, 20);
	}
	assert_int_equal(fixture_counter(&f, DUMP_COUNTER_samples_taken), freed);
	assert_int_equal(fixture_counter(&f, DUMP_COUNTER_samples_freed), freed);
	assert_int_equal(fixture_counter(&f, DUMP_COUNTER_frees_missed), 0);
	assert_int_equal(fixture_history_count(&f), freed);
}

static void test_realloc_semantics(void **state)
{
	struct dump_live_record record;

	(void)state;
	make(0x1000, 10);
	answer = 0; /* failed: the block is as it was */
	call(HOOK_realloc, 0x1000, 20, 0, 0, 0, 0);
	assert_true(fixture_live(&f, (void *)0x1000, &record));
	assert_int_equal(record.size, 10);
	answer = 0x1000; /* in place */
	call(HOOK_realloc, 0x1000, 30, 0, 0, 0, 0);
	assert_true(fixture_live(&f, (void *)0x1000, &record));
	assert_int_equal(record.size, 30);
	answer = 0x2000; /* moved */
	call(HOOK_reallocarray, 0x1000, 8, 5, 0, 0, 0);
	assert_false(fixture_live(&f, (void *)0x1000, &record));
	assert_true(fixture_live(&f, (void *)0x2000, &record));
	assert_int_equal(record.size, 40);
	answer = 0; /* the product overflows: refused, though it wraps to 0 */
	call(HOOK_reallocarray, 0x2000, 1ull << 63, 2, 0, 0, 0);
	assert_true(fixture_live(&f, (void *)0x2000, &record));
	call(HOOK_realloc, 0x2000, 0, 0, 0, 0, 0); /* freed */
	assert_int_equal(fixture_live_count(&f), 0);
	assert_int_equal(fixture_counter(&f, DUMP_COUNTER_frees_missed), 0);
	assert_int_equal(fixture_history_count(&f), 3);
	answer = UINT64_MAX; /* mremap to 0 bytes is an error, not a free */
	make(0x3000, 4096);
	answer = UINT64_MAX;
	call(HOOK_mremap, 0x3000, 4096, 0, 0, 0, 0);
	assert_int_equal(fixture_live_count(&f), 1);
}

static void test_xallocx_semantics(void **state)
{
	struct dump_live_record record;

	(void)state;
	make(0x1000, 10);
	answer = 16; /* did not grow */
	call(HOOK_xallocx, 0x1000, 100, 0, 0, 0, 0);
	assert_true(fixture_live(&f, (void *)0x1000, &record));
	assert_int_equal(record.size, 10);
	answer = 112;
	call(HOOK_xallocx, 0x1000, 100, 0, 0, 0, 0);
	assert_true(fixture_live(&f, (void *)0x1000, &record));
	assert_int_equal(record.size, 100);
}

static void test_mmap_records_anonymous_mappings_only(void **state)
{
	(void)state;
	answer = 0x9000;
	call(HOOK_mmap, 0, 4096, 3, MAP_PRIVATE, 5, 0);
	assert_int_equal(fixture_live_count(&f), 0);
	call(HOOK_mmap64, 0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0);
	assert_int_equal(fixture_live_count(&f), 1);
}

static void test_calloc_overflow_records_nothing(void **state)
{
	(void)state;
	answer = 0;
	call(HOOK_calloc, 1ull << 33, 1ull << 33, 0, 0, 0, 0);
	call(HOOK_malloc, UINT64_MAX, 0, 0, 0, 0, 0);
	assert_int_equal(fixture_counter(&f, DUMP_COUNTER_samples_taken), 0);
}

static void test_no_bytes_count_as_one(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < HOOK_COUNT; i++) {
		uint64_t block = 0x7000000 + 4096 * i, taken = fixture_counter(&f, DUMP_COUNTER_samples_taken), out = 0;

		if (facts[i].size == SIZE_NONE || facts[i].shape == SHAPE_RESIZE)
			continue;
		store_out = facts[i].shape == SHAPE_OUT;
		out_value = block;
		answer = store_out ? 0 : block;
		call(i, store_out ? (uint64_t)&out : 0, 0, 0, 0x22, 0, 0);
		assert_int_equal(fixture_counter(&f, DUMP_COUNTER_samples_taken), taken + 1);
	}
	store_out = false;
}

static void test_missed_free_is_noticed(void **state)
{
	struct dump_history_record past;

	(void)state;
	make(0x1000, 10);
	make(0x1000, 20);
	assert_int_equal(fixture_live_count(&f), 1);
	assert_int_equal(fixture_counter(&f, DUMP_COUNTER_frees_missed), 1);
	assert_true(fixture_history(&f, 0, &past));
	assert_int_equal(past.flags, DUMP_HISTORY_FREE_MISSED);
	assert_int_equal(past.size, 10);
}

static uint64_t calls_of_other;

static uint64_t other_original(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t g)
{
	(void)a, (void)b, (void)c, (void)d, (void)e, (void)g;
	return 0x6660 + 0x1000 * ++calls_of_other;
}

/* Two allocators in one process: each gate calls its own, the blocks of both are recorded, and either's free finds
 * them. */
static void test_gates_of_two_allocators(void **state)
{
	struct gate *gates = (struct gate *)gate_data(memattach_session.gates_address, 0);

	(void)state;
	gates[HOOK_malloc].original = (uint64_t)other_original;
	calls_of_other = 0;
	answer = 0x5550;
	for (int i = 0; i < 10; i++) {
		answer += 0x1000;
		assert_int_equal(call(HOOK_malloc, 10, 0, 0, 0, 0, 0), 0x6660 + 0x1000 * (uint64_t)(i + 1));
		assert_int_equal(call(HOOK_calloc, 1, 20, 0, 0, 0, 0), answer);
	}
	assert_int_equal(calls_of_other, 10);
	assert_int_equal(fixture_live_count(&f), 20);
	for (uint64_t i = 0; i < 10; i++) {
		call(HOOK_free, 0x7660 + 0x1000 * i, 0, 0, 0, 0, 0);
		call(HOOK_cfree, 0x6550 + 0x1000 * i, 0, 0, 0, 0, 0);
	}
	assert_int_equal(fixture_live_count(&f), 0);
	assert_int_equal(fixture_history_count(&f), 20);
}

static uint64_t usable_of(uint64_t block)
{
	return block == 0x7770 ? 48 : 1000;
}

/* An allocator may do anything before it tells a size, even call itself: that is counted as lost, and the record is
 * what it would have been. */
static uint64_t usable_by_allocating(uint64_t block)
{
	struct dump_live_record record;

	assert_false(fixture_live(&f, (void *)block, &record));
	answer = 0x5000;
	call(HOOK_malloc, 7, 0, 0, 0, 0, 0);
	answer = block;
	return 48;
}

static void test_usable_size_is_asked_for_last(void **state)
{
	struct dump_live_record record;

	(void)state;
	payload.usable_size = (uint64_t)usable_by_allocating;
	make(0x1000, 40);
	assert_true(fixture_live(&f, (void *)0x1000, &record));
	assert_int_equal(record.usable, 48);
	assert_int_equal(record.size, 40);
	assert_int_equal(fixture_live_count(&f), 1);
	assert_int_equal(fixture_counter(&f, DUMP_COUNTER_samples_taken), 1);
	assert_int_equal(fixture_counter(&f, DUMP_COUNTER_lost_busy), 1);
}

/* A free of a block without a record is counted, with its size; NULL, munmap and recorded blocks are not. */
static void test_frees_of_unseen_blocks_are_counted(void **state)
{
	(void)state;
	payload.usable_size = (uint64_t)usable_of;
	make(0x1000, 10);
	call(HOOK_free, 0x1000, 0, 0, 0, 0, 0);
	call(HOOK_free, 0, 0, 0, 0, 0, 0);
	call(HOOK_munmap, 0x9000, 4096, 0, 0, 0, 0);
	assert_int_equal(f.dump->frees_unseen, 0);
	call(HOOK_free, 0x7770, 0, 0, 0, 0, 0);
	call(HOOK_free_sized, 0x8880, 0, 0, 0, 0, 0);
	call(HOOK_delete, 0x9990, 0, 0, 0, 0, 0);
	assert_int_equal(f.dump->frees_unseen, 3);
	assert_int_equal(f.dump->frees_unseen_bytes, 1048);
	assert_int_equal(fixture_history_count(&f), 1);
}

static int open_empty(void **state)
{
	(void)state;
	start(1, false);
	return 0;
}

static void test_hook_without_regions_counts_losses(void **state)
{
	(void)state;
	answer = 0x1000;
	call(HOOK_malloc, 10, 0, 0, 0, 0, 0);
	call(HOOK_free, 0x1000, 0, 0, 0, 0, 0);
	assert_int_equal(fixture_counter(&f, DUMP_COUNTER_samples_taken), 1);
	assert_int_equal(fixture_counter(&f, DUMP_COUNTER_lost_live_full), 1);
	assert_int_equal(fixture_counter(&f, DUMP_COUNTER_lost_stack_full), 1);
}

static void test_hook_counts_what_has_no_room(void **state)
{
	const struct dump_region *index = &f.dump->regions[0];
	uint64_t unkept = 0;

	(void)state;
	fixture_region(&f, DUMP_REGION_STACK_INDEX, 4096, 8);
	fixture_region(&f, DUMP_REGION_STACKS, 4096, 0);
	for (uint64_t i = 1; i <= 3; i++) {
		answer = 0x1000 * i;
		call(HOOK_malloc, 10, 0, 0, 0, 0, 0);
	}
	const uint64_t *words = (const uint64_t *)(const void *)((const uint8_t *)f.dump + index->offset);
	for (uint32_t k = 0; k < 8; k++)
		if (words[k]) {
			const struct dump_stack *stack = fixture_stack(&f, DUMP_INDEX_REFERENCE(words[k]));

			assert_int_equal(stack->unkept, stack->taken_count);
			unkept += stack->unkept;
		}
	assert_int_equal(unkept, 3);
	assert_int_equal(fixture_counter(&f, DUMP_COUNTER_lost_live_full), 3);
	assert_int_equal(fixture_counter(&f, DUMP_COUNTER_lost_stack_full), 0);
}

static void test_lease_that_ran_out_ends_the_recording(void **state)
{
	(void)state;
	f.dump->lease_stamp = 1;
	answer = 0x1000;
	call(HOOK_malloc, 10, 0, 0, 0, 0, 0);
	assert_int_equal(fixture_live_count(&f), 0);
	assert_int_equal(f.dump->state, DUMP_STATE_ABANDONED);
	assert_int_equal(*(uint32_t *)memattach_session.switch_address, 0);
	assert_int_equal(call(HOOK_malloc, 10, 0, 0, 0, 0, 0), 0x1000);
}

static int open_rate(void **state)
{
	(void)state;
	start(1000, true);
	return 0;
}

/* What the stacks' sums say was allocated: bytes, count, and the variances of both. */
static void sums(double sum[4])
{
	memset(sum, 0, 4 * sizeof(*sum));
	for (uint32_t i = 0; i < f.dump->region_count; i++) {
		const struct dump_region *region = &f.dump->regions[i];
		const uint64_t *words = (const uint64_t *)(const void *)((const uint8_t *)f.dump + region->offset);

		for (uint64_t k = 0; region->kind == DUMP_REGION_STACK_INDEX && k < region->entries; k++) {
			const struct dump_stack *stack = fixture_stack(&f, DUMP_INDEX_REFERENCE(words[k]));

			sum[0] += stack ? (double)stack->taken_bytes + stack->excess_bytes : 0;
			sum[1] += stack ? (double)stack->taken_count + stack->excess_count : 0;
			sum[2] += stack ? stack->variance_bytes : 0;
			sum[3] += stack ? stack->variance_count : 0;
		}
	}
}

/* The rate changes in the middle: each record carries the rate that it was drawn with, the estimate stays right. 4.5
 * standard errors. */
static void check_rate_changes(void (*order)(uint64_t rate))
{
	static const uint64_t rates[] = { 500, 20000, 3000, 500000, 1000 };
	double truth = 0, sum[4];
	uint32_t met = 0;

	for (uint64_t i = 0; i < 1000000; i++) {
		uint64_t size = i % 997 ? i % 97 : 30000;

		if (i % 5000 == 0)
			order(rates[i / 5000 % 5]);
		answer = 0x100000 + 64 * (i % 20000);
		call(HOOK_malloc, size, 0, 0, 0, 0, 0);
		call(HOOK_free, answer, 0, 0, 0, 0, 0);
		truth += (double)size;
	}
	sums(sum);
	assert_true(fabs(sum[0] - truth) < 4.5 * sqrt(sum[2]));
	assert_true(fabs(sum[1] - 1000000) < 4.5 * sqrt(sum[3]));
	assert_true(sqrt(sum[2]) < truth / 10); /* most of it from the rate 500000 */
	for (int k = 0; k < 5; k++) {
		for (uint64_t i = 0; i < 2000; i++) {
			struct dump_history_record past;

			if (!fixture_history(&f, i, &past) || past.rate_bytes != rates[k])
				continue;
			met |= 1u << k;
			break;
		}
	}
	assert_true((met & 21) == 21); /* those with many samples */
}

/* Gate and hook let those frees pass that filter.c says are of no sample, and no others. Half of those that one counter
 * knows are not known by both. */
static void test_hooks_ask_the_filter(void **state)
{
	static const uint32_t hooks[] = { HOOK_free, HOOK_munmap };
	uint64_t known = 0, maybe = 0;

	(void)state;
	for (uint64_t i = 0; i < 20000; i++)
		filter_add(0x7f0000000000 + i * 4048);
	for (uint64_t i = 0; i < 20000; i++) {
		uint64_t address = i % 2 ? 0x7f0000000000 + i * 4048 : 0x560000000000 + i * 592;

		maybe += i % 2 == 0 && filter_maybe(address);
		for (unsigned k = 0; k < 2; k++) {
			uint64_t before = fixture_counter(&f, DUMP_COUNTER_filter_hits);

			call(hooks[k], address, 0, 0, 0, 0, 0);
			assert_int_equal(fixture_counter(&f, DUMP_COUNTER_filter_hits) - before, filter_maybe(address));
			known += filter_maybe(address);
		}
	}
	assert_int_equal(known, 20000 + 2 * maybe);
	/* 40 000 marks on 65 536 counters: 0.46 of them are not 0, so 0.26 of the others' frees meet one and a second
	 * one; 0.457 the first. */
	assert_true(maybe > 1000 && maybe < 3600);
}

static int open_least(void **state)
{
	(void)state;
	start(500, true);
	return 0;
}

static void test_rate_in_the_header_keeps_the_estimate(void **state)
{
	(void)state;
	check_rate_changes(order_rate);
}

static void test_lost_owners_and_another_rate_keep_the_estimate(void **state)
{
	(void)state;
	check_rate_changes(order_at_once);
}

/* Who can write to the dump cannot have more samples taken than the session asked for, nor break the countdown. */
static void test_rate_in_the_header_is_not_trusted(void **state)
{
	static const uint64_t wild[] = { 0, 1, 499, UINT64_MAX, 1ull << 32, 1ull << 63 };

	(void)state;
	for (int k = 0; k < 6; k++) {
		uint64_t taken = fixture_counter(&f, DUMP_COUNTER_samples_taken);

		order_rate(wild[k]);
		for (uint64_t i = 0; i < 20000; i++) {
			answer = 0x100000 + 64 * i;
			call(HOOK_malloc, 50, 0, 0, 0, 0, 0);
			call(HOOK_free, answer, 0, 0, 0, 0, 0);
		}
		taken = fixture_counter(&f, DUMP_COUNTER_samples_taken) - taken;
		assert_true(taken > 1700 && taken < 2110); /* 1903 expected, standard deviation 42 */
	}
}

/* From every allocation to samples, and back: what was drawn with 1 has the weight 1. */
static void test_rate_in_the_header_ends_exactness(void **state)
{
	double sum[4];

	(void)state;
	for (uint64_t i = 0; i < 100000; i++) {
		order_rate(i / 20000 % 2 ? 1000 : 1);
		answer = 0x100000 + 64 * (i % 20000);
		call(HOOK_malloc, 100, 0, 0, 0, 0, 0);
		call(HOOK_free, answer, 0, 0, 0, 0, 0);
	}
	sums(sum);
	assert_true(fabs(sum[0] - 1e7) < 4.5 * sqrt(sum[2]));
	assert_true(sum[2] > 0);
	assert_true(fixture_counter(&f, DUMP_COUNTER_samples_taken) > 60000);
	assert_true(fixture_counter(&f, DUMP_COUNTER_samples_taken) < 66000);
	assert_int_equal(fixture_live_count(&f), 0);
}

/* Huge sizes do not upset the countdown. */
static void test_huge_sizes_keep_the_countdown(void **state)
{
	const uint64_t huge[] = { UINT64_MAX, 1ull << 63, 3ull << 62, (1ull << 63) - 1 };
	uint64_t before;

	(void)state;
	for (int i = 0; i < 400; i++) {
		answer = 0;
		call(HOOK_malloc, huge[i % 4], 0, 0, 0, 0, 0);
		call(HOOK_calloc, huge[i % 4], 1, 0, 0, 0, 0);
	}
	assert_int_equal(fixture_counter(&f, DUMP_COUNTER_samples_taken), 0);
	before = fixture_counter(&f, DUMP_COUNTER_samples_taken);
	for (int i = 0; i < 10000; i++) {
		answer = 0x1000 + 16 * (uint64_t)i;
		call(HOOK_malloc, 1000, 0, 0, 0, 0, 0);
	}
	/* 6321 expected, standard deviation 48 */
	assert_true(fixture_counter(&f, DUMP_COUNTER_samples_taken) - before > 6000);
	assert_true(fixture_counter(&f, DUMP_COUNTER_samples_taken) - before < 6600);
}

static volatile sig_atomic_t signals;

static uint64_t quiet_original(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t g)
{
	(void)a, (void)b, (void)c, (void)d, (void)e, (void)g;
	return 0x40000000 + (uint64_t)signals % 1000 * 16;
}

static void handler(int number)
{
	(void)number;
	signals++;
	call(HOOK_valloc, 64, 0, 0, 0, 0, 0);
	call(HOOK_cfree, 0x40000000 + (uint64_t)signals % 1000 * 16, 0, 0, 0, 0, 0);
}

/* A timer interrupts hooks wherever they are; its handler calls hooks. */
static void test_signal_handlers_may_call_hooks(void **state)
{
	struct sigaction action = { .sa_handler = handler }, old;
	struct timeval step = { .tv_usec = 200 };
	struct itimerval timer = { step, step }, off = { 0 };
	struct gate *gates = (struct gate *)gate_data(memattach_session.gates_address, 0);

	(void)state;
#ifdef __SANITIZE_THREAD__
	print_message("skipped: ThreadSanitizer puts signal handlers off until the next system call\n");
	skip();
#endif
	gates[HOOK_valloc].original = gates[HOOK_cfree].original = (uint64_t)quiet_original;
	assert_int_equal(sigaction(SIGALRM, &action, &old), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
	for (uint64_t i = 0; signals < 300 && i < 200000000; i++) {
		answer = 0x10000 + i % 4096 * 64;
		call(HOOK_malloc, 10, 0, 0, 0, 0, 0);
		call(HOOK_free, 0x10000 + i % 4096 * 64, 0, 0, 0, 0, 0);
	}
	setitimer(ITIMER_REAL, &off, NULL);
	sigaction(SIGALRM, &old, NULL);
	assert_true(fixture_live_count(&f) <= 1001);
	assert_true(fixture_counter(&f, DUMP_COUNTER_samples_taken) > 300);
}

static void test_patch_slots_states(void **state)
{
	uint64_t *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t gone = (uint64_t)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct slot slots[5] = {
		{ .address = (uint64_t)&page[0], .old_value = 11, .gate = 0, .page_protection = PROT_READ },
		{ .address = (uint64_t)&page[1], .old_value = 99, .gate = 1, .page_protection = PROT_READ },
		{ .address = (uint64_t)&page[512],
		  .old_value = 13,
		  .gate = 2,
		  .page_protection = PROT_READ | PROT_WRITE },
		{ .address = (uint64_t)&page[513] + 4,
		  .old_value = 14,
		  .gate = 2,
		  .page_protection = PROT_READ | PROT_WRITE },
		{ .address = gone, .old_value = 0, .gate = 0, .page_protection = PROT_READ },
	};
	struct control_patch patch = { .channel = -1, .slot_count = 5, .slots = (uint64_t)slots };
	const struct slot *kept;

	(void)state;
	page[0] = 11;
	page[1] = 12;
	page[512] = 13;
	assert_int_equal(mprotect(page, 4096, PROT_READ), 0);
	munmap((void *)gone, 4096);
	assert_int_equal(memattach_control(CONTROL_PATCH, &patch), 0);
	assert_int_equal(slots[0].state, SLOT_PATCHED);
	assert_int_equal(slots[1].state, SLOT_REFUSED);
	assert_int_equal(slots[2].state, SLOT_PATCHED);
	assert_int_equal(slots[3].state, SLOT_REFUSED);
	assert_int_equal(slots[4].state, SLOT_REFUSED);
	assert_int_equal(page[0], gate(0));
	assert_int_equal(page[1], 12);
	assert_int_equal(page[512], gate(2));
	assert_int_equal(fixture_protection((uint64_t)page), PROT_READ);
	assert_int_equal(fixture_protection((uint64_t)&page[512]), PROT_READ | PROT_WRITE);
	page[512] = 77; /* somebody else's hook */
	assert_int_equal(memattach_control(CONTROL_RESTORE, NULL), 0);
	kept = (const struct slot *)memattach_session.slots_address;
	assert_int_equal(kept[0].state, SLOT_RESTORED);
	assert_int_equal(kept[2].state, SLOT_FOREIGN);
	assert_int_equal(page[0], 11);
	assert_int_equal(page[512], 77);
	assert_int_equal(fixture_protection((uint64_t)page), PROT_READ);
	munmap(page, 8192);
}

static void test_inert_gates_call_the_original(void **state)
{
	const struct gate *gates = (const struct gate *)gate_data(memattach_session.gates_address, 0);

	(void)state;
	call(HOOK_malloc, 1, 0, 0, 0, 0, 0);
	assert_int_equal(gates_shared->near_owner, arch_thread_pointer());
	assert_int_equal(memattach_control(CONTROL_INERT, NULL), 0);
	assert_int_equal(gates_shared->near_owner, 0);
	for (uint32_t i = 0; i < HOOK_COUNT; i++) {
		assert_int_equal(gates[i].entry, gates[i].original);
		answer = i;
		assert_int_equal(call(i, 1, 2, 3, 4, 5, 6), i);
	}
	assert_int_equal(fixture_live_count(&f), 0);
}

/* A hook that was left between the charge and the draw, by a signal handler's siglongjmp, must not silence its thread
 * for ever. */
static void test_a_distance_below_zero_is_seen(void **state)
{
	static const uint32_t hooks[] = { HOOK_malloc, HOOK_calloc };

	(void)state;
	order_at_once(1 << 20);
	answer = 0x5000;
	call(HOOK_malloc, 1, 0, 0, 0, 0, 0);
	for (int i = 0; i < 2; i++) {
		uint64_t taken = fixture_counter(&f, DUMP_COUNTER_samples_taken);

		gates_shared->near.remaining = (uint64_t)-1000;
		call(hooks[i], 1, 1, 0, 0, 0, 0);
		assert_int_equal(fixture_counter(&f, DUMP_COUNTER_samples_taken), taken + 1);
		assert_true(gates_shared->near.remaining < 1ull << 40);
	}
}

/* The list of include/gates.h is that of the assembler. */
static void test_gate_instructions_are_known(void **state)
{
	extern const uint8_t gate_instructions[];
	extern const uint32_t gate_instruction_count;
	uint32_t found = 0;

	(void)state;
	for (uint64_t offset = 0; offset < GATE_CODE_BYTES; offset++)
		found += gate_instruction_at(offset);
	assert_int_equal(found, gate_instruction_count);
	for (uint32_t i = 0; i < gate_instruction_count; i++)
		assert_true(gate_instruction_at(gate_instructions[i]));
	assert_true(gate_instruction_at(GATE_ALLOCATE) && gate_instruction_at(GATE_RELEASE) &&
	            gate_instruction_at(GATE_OTHER));
}

#define EXACT(name) cmocka_unit_test_setup_teardown(name, open_exact, close_session)
#define EXACT_IN_EACH_SLOT(name)                                                                                       \
	EXACT(name), { #name "_at_home", name, open_exact_at_home, close_session, NULL },                              \
	{                                                                                                              \
#name "_behind", name, open_exact_behind, close_session, NULL                                          \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EXACT_IN_EACH_SLOT(test_hook_passes_arguments_and_result),
		EXACT_IN_EACH_SLOT(test_hook_records_new_blocks),
		EXACT(test_hook_leaves_the_next_block_alone),
		EXACT_IN_EACH_SLOT(test_realloc_semantics),
		EXACT(test_xallocx_semantics),
		EXACT(test_mmap_records_anonymous_mappings_only),
		EXACT_IN_EACH_SLOT(test_calloc_overflow_records_nothing),
		EXACT_IN_EACH_SLOT(test_no_bytes_count_as_one),
		EXACT(test_missed_free_is_noticed),
		EXACT(test_usable_size_is_asked_for_last),
		EXACT(test_frees_of_unseen_blocks_are_counted),
		EXACT(test_gates_of_two_allocators),
		EXACT(test_lease_that_ran_out_ends_the_recording),
		EXACT(test_signal_handlers_may_call_hooks),
		EXACT(test_patch_slots_states),
		EXACT(test_inert_gates_call_the_original),
		EXACT(test_a_distance_below_zero_is_seen),
		cmocka_unit_test(test_gate_instructions_are_known),
		cmocka_unit_test_setup_teardown(test_hook_without_regions_counts_losses, open_empty, close_session),
		cmocka_unit_test_setup_teardown(test_hook_counts_what_has_no_room, open_empty, close_session),
		cmocka_unit_test_setup_teardown(test_hooks_ask_the_filter, open_rate, close_session),
		cmocka_unit_test_setup_teardown(test_rate_in_the_header_keeps_the_estimate, open_least, close_session),
		cmocka_unit_test_setup_teardown(test_lost_owners_and_another_rate_keep_the_estimate, open_least,
		                                close_session),
		cmocka_unit_test_setup_teardown(test_rate_in_the_header_is_not_trusted, open_least, close_session),
		EXACT(test_rate_in_the_header_ends_exactness),
		cmocka_unit_test_setup_teardown(test_huge_sizes_keep_the_countdown, open_rate, close_session),
	};

	return cmocka_run_group_tests_name("hook", tests, NULL, NULL);
}
