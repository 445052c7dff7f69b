/* SPDX-License-Identifier: MIT */
/* Names of compiled frames, in a code cache that this program's own memory stands in for: HotSpot's layout of 25. */
#include <string.h>

#include "fixture.h"
#include "arch/java_frame.h"
#include "java/java_frame.h"
#include "java_fake.h"

#define FIELD JAVA_FAKE_FIELD
#define SHIFT 7u /* of a segment */
#define SEGMENTS 4u
#define COMPILE_ID 4711u
#define PC 4u

/* What an nmethod has by malloc. */
static struct fake_debug {
	int32_t pcs[3][2]; /* offset of the pc, of its scope */
	uint8_t scopes[32];
} debug;
static struct fake_data {
	uint64_t relocation;
	uint64_t methods[2];
} data;

static struct fake_heap {
	struct {
		uint64_t segments, used;
	} block;
	struct fake_blob {
		uint64_t name, method, immutable, mutable;
		uint32_t bytes, start, frame_words, id;
		int32_t pcs[2]; /* from where to where, in debug */
		uint32_t scopes, relocation;
	} blob;
	uint8_t code[64];
	/* What lies behind: as fake_debug it has no pc. */
	struct fake_data behind;
	uint8_t rest[400];
} heap __attribute__((aligned(1u << SHIFT)));
_Static_assert(sizeof heap >= SEGMENTS << SHIFT, "the block is in the heap");

static uint8_t segmap[SEGMENTS] = { 0, 1, 2, 3 };
static uint64_t high, segmap_end;
static struct java_fake outer, inlined, other;

static struct java_view compiled_view(void)
{
	struct java_view v = java_fake_view(&outer);

	high = java_fake_at(&heap) + (SEGMENTS << SHIFT);
	segmap_end = java_fake_at(segmap) + SEGMENTS;
	v.cache = java_fake_at(&heap);
	v.cache_bytes = SEGMENTS << SHIFT;
	v.heap_count = 1;
	v.heaps[0] = (struct java_heap){ .low = v.cache,
		                         .high = high,
		                         .segmap = java_fake_at(segmap),
		                         .segmap_end = segmap_end,
		                         .high_word = java_fake_at(&high),
		                         .segmap_end_word = java_fake_at(&segmap_end),
		                         .shift = SHIFT };
	v.s.block_length = FIELD(struct fake_heap, block.segments);
	v.s.block_used = FIELD(struct fake_heap, block.used);
	v.s.bytes.block = offsetof(struct fake_heap, blob);
	v.s.blob_name = FIELD(struct fake_blob, name);
	v.s.blob_bytes = FIELD(struct fake_blob, bytes);
	v.s.blob_code = FIELD(struct fake_blob, start);
	v.s.blob_frame_words = FIELD(struct fake_blob, frame_words);
	v.s.blob_mutable = FIELD(struct fake_blob, mutable);
	v.s.blob_relocation = FIELD(struct fake_blob, relocation);
	v.s.compiled_immutable = FIELD(struct fake_blob, immutable);
	v.s.compiled_method = FIELD(struct fake_blob, method);
	v.s.compiled_id = FIELD(struct fake_blob, id);
	v.s.compiled_pcs.at = offsetof(struct fake_blob, pcs);
	v.s.compiled_scopes = FIELD(struct fake_blob, scopes);
	v.s.bytes.pc_desc = sizeof debug.pcs[0];
	return v;
}

/* f of Outer is compiled; at PC, in its bytecode 3, f of Inlined is at its bytecode 5. */
static void compile(void)
{
	java_fake_make(&outer, "Outer");
	java_fake_make(&inlined, "Inlined");
	java_fake_make(&other, "Other");
	debug = (struct fake_debug){ .pcs = { { -1, 0 }, { PC, 16 }, { sizeof heap.code, 0 } } };
	java_fake_number(java_fake_number(java_fake_number(debug.scopes + 1, 0), 1), 3 + 1);
	java_fake_number(java_fake_number(java_fake_number(debug.scopes + 16, 1), 2), 5 + 1);
	data = (struct fake_data){ .methods = { java_fake_at(&outer.method), java_fake_at(&inlined.method) } };
	heap = (struct fake_heap){
		.block = { .segments = SEGMENTS, .used = 1 },
		.blob = { .name = java_fake_at("nmethod"),
		          .method = java_fake_at(&outer.method),
		          .immutable = java_fake_at(&debug),
		          .mutable = java_fake_at(&data),
		          .bytes = offsetof(struct fake_heap, behind) - offsetof(struct fake_heap, blob),
		          .start = offsetof(struct fake_heap, code) - offsetof(struct fake_heap, blob),
		          .frame_words = 2,
		          .id = COMPILE_ID,
		          .pcs = { offsetof(struct fake_debug, pcs), offsetof(struct fake_debug, scopes) },
		          .scopes = offsetof(struct fake_debug, scopes),
		          .relocation = offsetof(struct fake_data, methods) },
		.behind = { .methods = { java_fake_at(&outer.method), java_fake_at(&other.method) } },
	};
}

static int read_frame(struct java_called *list, uint32_t *count)
{
	struct java_view v = compiled_view();
	struct err e;

	return java_frame_read(&v, JAVA_FRAME(java_fake_at(heap.code + PC), COMPILE_ID), list, count, &e);
}

static void test_java_frame_read_names_what_is_inlined(void **state)
{
	struct java_called list[JAVA_INLINED_MAX];
	uint32_t count;

	(void)state;
	compile();
	assert_int_equal(read_frame(list, &count), 0);
	assert_int_equal(count, 2);
	assert_string_equal(list[0].place.function, "Inlined.f");
	assert_string_equal(list[1].place.function, "Outer.f");
	assert_int_equal(list[1].place.line, 7);
	heap.blob.id++;
	assert_int_equal(read_frame(list, &count), -ENOENT);
}

/* HotSpot frees the tables and has their fields lead to the end of the blob, before its block is free. */
static void test_java_frame_read_believes_no_tables_that_were_given_back(void **state)
{
	const uint64_t end = java_fake_at(&heap.behind);
	struct java_called list[JAVA_INLINED_MAX];
	uint32_t count;

	(void)state;
	compile();
	heap.blob.immutable = end;
	assert_int_equal(read_frame(list, &count), -ENOENT);
	compile();
	heap.blob.mutable = end;
	assert_int_equal(read_frame(list, &count), -ENOENT);
}

/* The wrapper of a native method may have none. */
static void test_java_frame_read_needs_no_tables_of_a_native_method(void **state)
{
	const uint64_t end = java_fake_at(&heap.behind);
	struct java_called list[JAVA_INLINED_MAX];
	uint32_t count;

	(void)state;
	compile();
	heap.blob.name = java_fake_at("native nmethod");
	heap.blob.pcs[0] = heap.blob.pcs[1];
	heap.blob.immutable = heap.blob.mutable = end;
	assert_int_equal(read_frame(list, &count), 0);
	assert_int_equal(count, 1);
	assert_string_equal(list[0].place.function, "Outer.f");
	assert_int_equal(list[0].place.line, JAVA_NO_LINE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_java_frame_read_names_what_is_inlined),
		cmocka_unit_test(test_java_frame_read_believes_no_tables_that_were_given_back),
		cmocka_unit_test(test_java_frame_read_needs_no_tables_of_a_native_method),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
