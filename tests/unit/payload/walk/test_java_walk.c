/* SPDX-License-Identifier: MIT */
/* Walks through a made-up code heap of HotSpot: each kind of code, and all that may be wrong with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "arch/java_frame.h"
#include "walk/java_walk.h"
#include "walk/known_stack.h"
#include "walk/recent_stack.h"
#include "walk_fixture.h"

#define SHIFT 7u
#define SEGMENTS 512u
#define HEAP_BYTES ((uint64_t)SEGMENTS << SHIFT)
#define USED 8u         /* in the header of a block */
#define FRAME_WORDS 44u /* of the CodeBlob behind it */
#define ID 400u         /* the same, of a compiled method: */
#define ORIGINAL 404u
#define HANDLER 416u
#define COMPILED 8u /* segments where blocks begin */
#define INTERPRETER 100u
#define STUB 300u
#define BARRIER 400u

static uint8_t *heap, *segmap; /* each with a page behind it that cannot be read */
static uint64_t heap_high, segmap_high;

static uint8_t *guarded(uint64_t bytes)
{
	uint8_t *p = mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(mprotect(p + bytes, 4096, PROT_NONE), 0);
	return p;
}

static uint64_t code_at(uint32_t segment, uint32_t bytes)
{
	return (uint64_t)heap + ((uint64_t)segment << SHIFT) + bytes;
}

static void make_block(uint32_t segment, uint32_t count, uint32_t frame_words)
{
	uint8_t *block = heap + ((size_t)segment << SHIFT);
	const uint32_t id = 0x10000 + segment;

	block[USED] = 1;
	memcpy(block + FRAME_WORDS, &frame_words, sizeof frame_words);
	memcpy(block + ID, &id, sizeof id);
	for (uint32_t i = 0; i < count; i++)
		segmap[segment + i] = (uint8_t)(i > 200 ? 200 : i);
}

#define A (code_at(COMPILED, 900))
#define I (code_at(INTERPRETER, 3000))
#define CALL (code_at(STUB, 200))

static const uint32_t rules[] = { UNWIND_RULE(UNWIND_SP, 24, 2), UNWIND_RULE(UNWIND_END, 0, UNWIND_FP_SAME) };

/* malloc's caller, compiled code, the interpreter, what native code calls, and the native code that has called. */
static void make(void)
{
	memset(heap, 0, HEAP_BYTES);
	memset(segmap, JAVA_NO_SEGMENT, SEGMENTS);
	heap_high = (uint64_t)heap + HEAP_BYTES;
	segmap_high = (uint64_t)segmap + SEGMENTS;
	make_block(COMPILED, 20, 6);
	make_block(INTERPRETER, 150, 0);
	make_block(STUB, 10, 0);
	make_block(BARRIER, 10, 6);
	payload.java = (struct java_layout){
		.low = (uint64_t)heap,
		.bytes = HEAP_BYTES,
		.interpreter = code_at(INTERPRETER, 200),
		.interpreter_end = code_at(INTERPRETER + 150, 0),
		.call_stub_return = CALL,
		.barrier = code_at(BARRIER, 0),
		.barrier_end = code_at(BARRIER + 10, 0),
		.heap_count = 1,
		.block_used = USED,
		.frame_words = FRAME_WORDS,
		.compile_id = ID,
		.original = ORIGINAL,
		.handlers = { HANDLER, 0 },
		.heaps[0] = { .low = (uint64_t)heap,
		              .high = (uint64_t)&heap_high,
		              .segmap = (uint64_t)segmap,
		              .segmap_high = (uint64_t)&segmap_high,
		              .shift = SHIFT },
	};
	memset(stack, 0, sizeof stack);
	publish(rules, 2);
	stack[10] = PC(0); /* its CFA is word 14 */
	stack[13] = A;     /* its frame has six words */
	stack[18] = at(40);
	stack[19] = I;
	stack[40 + JAVA_SENDER_SP] = at(44);
	stack[40] = at(60);
	stack[41] = CALL;
	stack[60] = 0;
	stack[61] = PC(1);
}

static int open_java(void **state)
{
	open_session(state);
	heap = guarded(HEAP_BYTES);
	segmap = guarded(4096) + 4096 - SEGMENTS;
	make();
	return 0;
}

static int close_java(void **state)
{
	munmap(heap, HEAP_BYTES + 4096);
	munmap((void *)((uintptr_t)segmap & ~4095ull), 8192);
	return close_session(state);
}

/* The native frames, and what is recorded of the two of Java code. */
static void goes_through(uint64_t compiled, uint64_t interpreted)
{
	walk(10, 0xbad);
	assert_int_equal(result.count, 5);
	assert_frame(0, PC(0));
	assert_int_equal(frames[1], compiled);
	assert_int_equal(frames[2], interpreted);
	assert_frame(3, CALL);
	assert_frame(4, PC(1));
	assert_int_equal(DUMP_FRAME_MODULE(frames[3]), 0);
	for (uint32_t i = 0; i < result.count; i++)
		assert_int_equal(!!(frames[i] & JAVA_FRAME_MARK), i == 1 || (i == 2 && interpreted != I));
}

#define METHOD 0x7e1234567890ull

static void test_walk_goes_through_java_code(void **state)
{
	(void)state;
	goes_through(JAVA_FRAME(A, COMPILED), I);
	stack[40 + JAVA_METHOD] = METHOD;
	stack[40 + JAVA_BYTECODE] = 0x7e55aabb1234;
	goes_through(JAVA_FRAME(A, COMPILED), JAVA_FRAME(METHOD, 0x1234));
	assert_int_equal(result.flags, 0);
	assert_int_equal(result.fallback, 0);
}

/* Of the age that memattach says, whatever else is in the memory that it shares. */
static void test_interpreted_frames_have_an_age(void **state)
{
	(void)state;
	stack[40 + JAVA_METHOD] = METHOD;
	stack[40 + JAVA_BYTECODE] = 0x1234;
	payload.dump->java_age = 5;
	goes_through(JAVA_FRAME(A, COMPILED), JAVA_FRAME(JAVA_FRAME_AGED(METHOD, 5), 0x1234));
	payload.dump->java_age = UINT64_MAX;
	goes_through(JAVA_FRAME(A, COMPILED), JAVA_FRAME(JAVA_FRAME_AGED(METHOD, 7), 0x1234));
}

/* What cannot be a Method is none, and the frame that of code of HotSpot's. */
static void test_interpreter_without_a_method_is_plain_code(void **state)
{
	static const uint64_t words[] = { 0, METHOD | 4, JAVA_FRAME_END, UINT64_MAX - 7 };

	(void)state;
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		stack[40 + JAVA_METHOD] = words[i];
		goes_through(JAVA_FRAME(A, COMPILED), I);
	}
}

static void keep_original(uint64_t pc, uint32_t offset)
{
	memcpy(heap + ((size_t)COMPILED << SHIFT) + ORIGINAL, &offset, sizeof offset);
	stack[14] = pc;
}

/* Deoptimised code returns to a handler, and the frame has where it was left. */
static void test_deoptimised_code_is_where_it_was_left(void **state)
{
	const uint64_t handler = A, base = code_at(COMPILED, 0);
	const uint32_t from_base = (uint32_t)(handler - base) - 16;

	(void)state;
	memcpy(heap + ((size_t)COMPILED << SHIFT) + HANDLER, &handler, sizeof handler);
	keep_original(A - 100, 0);
	goes_through(JAVA_FRAME(A - 100, COMPILED), I);
	keep_original(A - 100, 24); /* not in the frame: the return address is all that is known */
	stack[17] = A - 100;
	goes_through(JAVA_FRAME(A - 100, COMPILED), I);
	keep_original(A - 100, 32);
	goes_through(JAVA_FRAME(A, COMPILED), I);
	keep_original(A - 100, 4);
	goes_through(JAVA_FRAME(A, COMPILED), I);
	keep_original(UINT64_MAX, 0);
	goes_through(JAVA_FRAME(A, COMPILED), I);
	keep_original(A - 100, 0);
	payload.java.handler_base = 16;
	memcpy(heap + ((size_t)COMPILED << SHIFT) + HANDLER, &from_base, sizeof from_base);
	goes_through(JAVA_FRAME(A - 100, COMPILED), I);
}

static void ends_at(uint32_t count)
{
	walk(10, 0xbad);
	assert_int_equal(result.count, count);
	assert_int_equal(result.flags, DUMP_STACK_TRUNCATED);
	make();
}

static void test_walk_ends_where_no_code_is(void **state)
{
	(void)state;
	heap[((size_t)COMPILED << SHIFT) + USED] = 0; /* freed */
	ends_at(2);
	segmap[COMPILED + 7] = JAVA_NO_SEGMENT;
	ends_at(2);
	segmap[COMPILED + 7] = COMPILED + 8; /* leads below the heap */
	ends_at(2);
	heap_high = A; /* not committed so far */
	ends_at(2);
	segmap_high = (uint64_t)segmap + COMPILED;
	ends_at(2);
	heap_high = code_at(COMPILED, JAVA_BLOB_BYTES - 1);
	ends_at(2);
	payload.java.heap_count = 0;
	ends_at(2);
	stack[19] = code_at(BARRIER, 900); /* the rest is on the Java heap */
	ends_at(3);
}

static void frame_of(uint32_t words)
{
	make_block(COMPILED, 20, words);
	ends_at(2);
}

static void test_walk_ends_at_a_java_frame_that_does_not_fit(void **state)
{
	(void)state;
	frame_of(0); /* it has no frame of its own */
	frame_of(1);
	frame_of(WORDS);
	frame_of(0x7fffffff);
	frame_of(0xffffffff);
	stack[18] = at(40) + 4; /* frame pointers for the interpreter: not aligned, below, beyond */
	ends_at(3);
	stack[18] = at(20);
	ends_at(3);
	stack[18] = at(WORDS - 1);
	ends_at(3);
	stack[18] = 8;
	ends_at(3);
	stack[39] = at(20); /* senders: not above, not aligned, beyond */
	if (JAVA_SENDER_MAY_BE_BELOW)
		goes_through(JAVA_FRAME(A, COMPILED), I);
	else
		ends_at(3);
	stack[39] = at(44) + 1;
	ends_at(3);
	stack[39] = at(WORDS) + 8;
	ends_at(3);
	stack[40] = at(43); /* a call stub's frame pointer below its frame */
	ends_at(4);
}

/* Its frame may not be what the block says (java_walk.h): no rule behind it makes more of the stack readable. */
static void test_behind_java_code_nothing_leads_out_of_the_page(void **state)
{
	uint32_t page = 64;

	(void)state;
	while (at(page) % 4096)
		page++;
	stack[page - 12] = PC(0);
	stack[page - 9] = A;
	stack[page - 3] = PC(0); /* its CFA is in the next page */
	stack[page] = PC(1);
	walk(page - 12, 0xbad);
	assert_int_equal(result.count, 4);
	known_stacks_init(0, 0, 0);
	walk(page - 12, 0xbad);
	assert_int_equal(result.count, 3);
	assert_int_equal(result.flags, DUMP_STACK_TRUNCATED);
	stack[page - 9] = PC(0); /* without Java code it does */
	stack[page - 6] = PC(0);
	walk(page - 12, 0xbad);
	assert_int_equal(result.count, 5);
}

static void test_walk_without_a_layout_does_not_know_java(void **state)
{
	(void)state;
	payload.java.bytes = 0;
	ends_at(2);
}

static void walk_again(struct recent_stack *recent, uint64_t *found)
{
	const struct unwind_start start = { .sp = at(10), .fp = 0xbad };

	unwind_walk(&start, recent, found, &result);
	unwind_frames_complete(recent, &result, found);
}

/* A JVM that is proved while the session lasts: frames that walks before that have found by frame pointers, and would
 * take over, are not Java frames. */
static void test_frames_from_before_a_layout_are_forgotten(void **state)
{
	struct recent_stack *recent = &recent_stacks[0];
	uint64_t found[DUMP_FRAMES_MAX];

	(void)state;
	memset(recent, 0, sizeof *recent);
	stack[12] = at(30); /* a frame pointer that leads out of the compiled code */
	stack[30] = 0;
	stack[31] = PC(1);
	payload.java.bytes = 0;
	for (int i = 0; i < 4; i++) {
		walk_again(recent, found);
		assert_int_equal(result.count, 3);
		assert_int_equal(found[1], A);
	}
	assert_int_equal(result.held, 3);
	payload.java.bytes = HEAP_BYTES;
	walk_again(recent, found);
	assert_int_equal(result.count, 5);
	assert_int_equal(found[1], JAVA_FRAME(A, COMPILED));
}

static uint64_t chance(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 20;
}

/* Segmaps, headers and stacks of chance: a walk reads nothing that is not mapped, and ends. */
static void test_walk_survives_any_code_heap(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (uint32_t round = 0; round < 20000; round++) {
		if (round % 500 == 0)
			for (uint64_t i = 0; i < HEAP_BYTES; i++)
				heap[i] = (uint8_t)chance(&seed);
		for (uint32_t i = 0; i < SEGMENTS; i++)
			segmap[i] = (uint8_t)(chance(&seed) % (round % 3 ? 4 : 256));
		heap_high = (uint64_t)heap + chance(&seed) % (HEAP_BYTES + 1);
		segmap_high = (uint64_t)segmap + chance(&seed) % (SEGMENTS + 1);
		for (uint32_t i = 13; i < 200; i++) {
			uint64_t kind = chance(&seed) % 4;
			stack[i] = kind == 0   ? at(chance(&seed) % 210)
			           : kind == 1 ? chance(&seed)
			                       : (uint64_t)heap - 200 + chance(&seed) % (HEAP_BYTES + 400);
		}
		walk(10, at(chance(&seed) % 200));
		assert_in_range(result.count, 1, DUMP_FRAMES_MAX);
	}
}

int main(void)
{
#define JAVA_TEST(name) cmocka_unit_test_setup_teardown(name, open_java, close_java)
	const struct CMUnitTest tests[] = {
		JAVA_TEST(test_walk_goes_through_java_code),
		JAVA_TEST(test_interpreted_frames_have_an_age),
		JAVA_TEST(test_interpreter_without_a_method_is_plain_code),
		JAVA_TEST(test_deoptimised_code_is_where_it_was_left),
		JAVA_TEST(test_walk_ends_where_no_code_is),
		JAVA_TEST(test_walk_ends_at_a_java_frame_that_does_not_fit),
		JAVA_TEST(test_behind_java_code_nothing_leads_out_of_the_page),
		JAVA_TEST(test_walk_without_a_layout_does_not_know_java),
		JAVA_TEST(test_frames_from_before_a_layout_are_forgotten),
		JAVA_TEST(test_walk_survives_any_code_heap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
