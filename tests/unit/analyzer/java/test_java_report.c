/* SPDX-License-Identifier: MIT */
/* Java frames in reports: which frames a row has with and without native ones, and what damaged names become. */
#include "views.h"

#include "live/live_heap.h"

static void make_hotspot(struct dump_builder *b, struct report *r, struct report_options options)
{
	dump_builder_hotspot(b);
	make(r, b, options);
}

/* "module:function:line" of a row's frames. */
static char *stack_of(const struct report *r, const struct report_row *row)
{
	static char text[2048];
	size_t used = 0, n;

	text[0] = 0;
	for (uint32_t i = 0; i < row->frame_count; i++) {
		const struct location *l = report_locations(r, row->frames[i], &n);
		const struct image *image = &r->images.list[PLACE_IMAGE(row->frames[i])];
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%s:%s:%d", i ? " < " : "",
		                         image->path ? image_name(image) : "", l->function ? l->function : "", l->line);
	}
	return text;
}

static const struct report_row *row_of(const struct report *r, const char *stack)
{
	return row_of_text(r, stack, stack_of);
}

#define OWN "com.shop:Frames.decode:31 < com.shop:Handler.h\xc3\xa9\x1b[1m:88 < (no package):Main.main:7"

static void leaves_out_hotspot(void (*build)(struct dump_builder *b))
{
	struct dump_builder b;
	struct report r;

	build(&b);
	make(&r, &b, (struct report_options){ .symbols = false });
	/* The entry that Java has called stays. */
	row_of(&r,
	       "libjvm.so::0 < java.nio:DirectByteBuffer.<init>:125 < java.nio:ByteBuffer.allocateDirect:332 < " OWN);
	/* Libraries stay; stubs and lambdas do not. */
	const struct report_row *deflate = row_of(&r, "libzip.so::0 < java.util.zip:Deflater.init:0 < " OWN);
	assert_int_equal(deflate->flags, 0);
	const struct report_row *gone =
		row_of(&r, "libjvm.so::0 < (Java):[gone]:0 < (Java):[gone]:0 < (no package):Main.main:7");
	assert_int_equal(gone->flags, DUMP_STACK_TRUNCATED);
	assert_int_equal(r.rows.count, 3);
	assert_int_equal(r.java.version, 17);
	assert_int_equal(r.java.samples, 21);
	assert_int_equal(r.java.complete, 20);
	report_done(&r);
	dump_builder_done(&b);
}

static void test_hotspot_and_what_is_internal_are_left_out(void **state)
{
	(void)state;
	leaves_out_hotspot(dump_builder_hotspot);
	leaves_out_hotspot(dump_builder_hotspot_63);
}

static void test_native_frames_are_shown_on_demand(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	make_hotspot(&b, &r, (struct report_options){ .symbols = false, .native = true });
	row_of(&r, "libjvm.so::0 < libjvm.so::0 < jdk.internal.misc:Unsafe.allocateMemory:0 < "
	           "java.nio:DirectByteBuffer.<init>:125 < java.nio:ByteBuffer.allocateDirect:332 < "
	           "com.shop:Frames.decode:31 < com.shop:Handler.h\xc3\xa9\x1b[1m:88 < ::0 < libjvm.so::0 < "
	           "(no package):Main.main:7 < libjvm.so::0 < libc.so.6::0");
	row_of(&r, "libzip.so::0 < java.util.zip:Deflater.init:0 < (HotSpot):StubRoutines (1):0 < "
	           "com.shop:Frames$$Lambda$14/0x0000000800c0.run:0 < " OWN " < libjvm.so::0 < libc.so.6::0");
	report_done(&r);
	dump_builder_done(&b);
}

static void marks_nothing(void (*build)(struct dump_builder *b), uint64_t features)
{
	struct dump_builder b;
	struct report r;

	build(&b);
	dump_builder_header(&b)->features = features;
	make(&r, &b, (struct report_options){ .symbols = false });
	assert_int_equal(r.java.samples, 0);
	for (size_t i = 0; i < r.rows.count; i++)
		assert_null(strstr(stack_of(&r, &r.rows.list[i]), "(Java)"));
	report_done(&r);
	dump_builder_done(&b);
}

/* They are bits of the address, or of a module's id. */
static void test_bits_47_and_63_mark_nothing_without_their_feature(void **state)
{
	(void)state;
	marks_nothing(dump_builder_hotspot, 0);
	marks_nothing(dump_builder_hotspot_63, 0);
}

static void test_names_that_are_damaged_are_none(void **state)
{
	struct report r;
	struct dump_builder b;

	(void)state;
	dump_builder_hotspot(&b);
	struct dump_region *region = dump_builder_region(&b, DUMP_REGION_JAVA);
	struct dump_java_method *m = dump_builder_at(&b, region->offset + sizeof(struct dump_arena));
	m->id = 77; /* the frames that name it name nothing */
	make(&r, &b, (struct report_options){ .symbols = false });
	row_of(&r, "libjvm.so::0 < (Java):[gone]:0 < " OWN);
	assert_int_equal(report_skipped(&r, DUMP_SKIP_java), 0);
	report_done(&r);
	m->name_bytes = 3; /* no NUL is there */
	make(&r, &b, (struct report_options){ .symbols = false });
	row_of(&r, "libjvm.so::0 < (Java):[gone]:0 < " OWN);
	assert_int_equal(report_skipped(&r, DUMP_SKIP_java), 1);
	report_done(&r);
	dump_builder_done(&b);
}

#define PROVED "libjvm.so::0 < java.nio:DirectByteBuffer.<init>:125 < java.nio:ByteBuffer.allocateDirect:332 < "

/* Compiled code is told by its number; of the interpreter's frames nobody knows, or memattach has yet to look. */
static void test_interpreted_frames_that_nobody_looks_after_have_no_names(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	for (int i = 0; i < 3; i++) {
		dump_builder_hotspot(&b);
		dump_builder_header(&b)->state = i == 0 ? DUMP_STATE_ABANDONED : DUMP_STATE_RUNNING;
		dump_builder_header(&b)->lease_realtime_ns = 0;
		dump_builder_header(&b)->java_behind = i == 1;
		make(&r, &b, (struct report_options){ .symbols = false });
		row_of(&r, i < 2 ? PROVED
		                   "com.shop:Frames.decode:31 < com.shop:Handler.h\xc3\xa9\x1b[1m:88 < (Java):[gone]:0"
		                 : PROVED OWN);
		report_done(&r);
		dump_builder_done(&b);
	}
}

static void test_text_names_packages_of_the_jdk_and_lines_of_others(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	make_hotspot(&b, &r, (struct report_options){ .symbols = true });
	char *text = text_of(&r);
	/* Who asked the JDK for it leads. */
	assert_non_null(strstr(text, "of Frames.decode (Frames.java:31) < "));
	assert_non_null(strstr(text, " java.nio (3 frames)\n"));
	assert_null(strstr(text, "DirectByteBuffer"));
	assert_non_null(strstr(text, "Frames.java:31"));
	assert_null(strstr(text, "\x1b[1m"));
	free(text);
	report_done(&r);
	dump_builder_done(&b);
	make_hotspot(&b, &r, (struct report_options){ .symbols = true, .show_std = true });
	text = text_of(&r);
	assert_non_null(strstr(text, "DirectByteBuffer.<init>"));
	assert_non_null(strstr(text, "java.nio"));
	assert_null(strstr(text, "DirectByteBuffer.java"));
	free(text);
	report_done(&r);
	dump_builder_done(&b);
}

/* Netty's buffers are asked for through a dozen methods of its allocator, which say as little as those of the JDK. */
static void test_nettys_allocator_is_not_who_holds(void **state)
{
	static const struct {
		const char *package;
		bool library;
	} known[] = { { "io.netty.buffer", true },
		      { "io.netty.util.internal", true },
		      { "io.netty.handler.codec", false },
		      { "io.nettyx.buffer", false },
		      { "java.nio", true },
		      { "com.sun.net.httpserver", true },
		      { "com.sunny", false },
		      { "javassist", false } };
	struct dump_builder b;
	struct report r;

	(void)state;
	make_hotspot(&b, &r, (struct report_options){ .symbols = false });
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		uint64_t place = source_places_add_java(&r.images, known[i].package, "A.b", "A.java", 3);
		assert_int_equal(source_places_jdk(&r.images, place) != NULL, known[i].library);
	}
	report_done(&r);
	dump_builder_done(&b);
}

/* Then the first sentence says who allocates, and the last line how to see it. */
static void test_where_nothing_is_live_it_is_said_who_allocates(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	make_hotspot(&b, &r, (struct report_options){ .symbols = true });
	r.options.verbose = false;
	for (int f = FIGURE_LIVE_BYTES; f <= FIGURE_LIVE_COUNT; f++)
		r.total.sum[f] = (struct estimate_sum){ 0 };
	for (size_t i = 0; i < r.rows.count; i++)
		for (int f = FIGURE_LIVE_BYTES; f <= FIGURE_LIVE_COUNT; f++)
			r.rows.list[i].sum[f] = (struct estimate_sum){ 0 };
	char *text = text_of(&r);
	assert_non_null(strstr(
		text, " nothing is live;\nthe stack that allocated most of what came and went is that of Frames.decode "
		      "(Frames.java:31) < "));
	free(text);
	/* Where another one allocated as much, it is not said to be the first. */
	struct report_row *list = r.rows.list, both[2] = { *list, *list };
	const size_t count = r.rows.count;
	r.rows.list = both;
	r.rows.count = 2;
	text = text_of(&r);
	r.rows.list = list;
	r.rows.count = count;
	assert_non_null(
		strstr(text, ";\none of the stacks that allocated most of what came and went is that of Frames"));
	free(text);
	r.total.sum[FIGURE_ALLOCATED_COUNT].samples = 100;
	text = text_of(&r);
	assert_non_null(strstr(text, "\nNext: memanalyze --sort allocated-bytes "));
	assert_null(strstr(text, "are few"));
	free(text);
	r.total.sum[FIGURE_ALLOCATED_COUNT].samples = 9;
	text = text_of(&r);
	assert_null(strstr(text, "came and went"));
	free(text);
	report_done(&r);
	dump_builder_done(&b);
}

static void test_json_says_the_language(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	make_hotspot(&b, &r, (struct report_options){ .symbols = false });
	assert_says(json_of(&r), "\"version\": 17");
	assert_says(json_of(&r), "\"language\":\"java\"");
	report_done(&r);
	dump_builder_done(&b);
}

static void look(struct live_heap *heap, struct dump_builder *b)
{
	struct dump *dump = open_built(b);
	bool anew;

	assert_int_equal(live_heap_look(heap, dump, &anew), 0);
	assert_false(anew);
	dump_close(dump);
}

static size_t stacks_with_function(const struct live_heap *heap, const char *function)
{
	size_t count = 0;

	for (size_t i = 0; i < heap->count; i++) {
		bool has = false;
		for (uint32_t k = 0; k < heap->list[i].place_count; k++) {
			const struct location *l = source_places_find(&heap->images, heap->list[i].places[k]);
			has |= l && !strcmp(l->function, function);
		}
		count += has;
	}
	return count;
}

/* memattach names frames some time after their stacks have come; one has none, and is not asked for again and again. */
static void test_java_names_come_later(void **state)
{
	struct dump_builder b;
	struct live_heap heap;

	(void)state;
	dump_builder_hotspot(&b);
	struct dump_arena *arena = dump_builder_at(&b, dump_builder_region(&b, DUMP_REGION_JAVA)->offset);
	const uint64_t used = arena->used;
	arena->used = 0;
	assert_int_equal(live_heap_init(&heap, NULL), 0);
	look(&heap, &b);
	assert_int_equal(stacks_with_function(&heap, "[gone]"), 3);
	assert_int_equal(heap.nameless, 3);
	arena->used = used;
	for (int i = 0; i < 6; i++) {
		look(&heap, &b);
		assert_int_equal(stacks_with_function(&heap, "[gone]"), 1);
		assert_int_equal(stacks_with_function(&heap, "Frames.decode"), 2);
	}
	assert_int_equal(heap.nameless, 0);
	live_heap_done(&heap);
	dump_builder_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hotspot_and_what_is_internal_are_left_out),
		cmocka_unit_test(test_native_frames_are_shown_on_demand),
		cmocka_unit_test(test_bits_47_and_63_mark_nothing_without_their_feature),
		cmocka_unit_test(test_names_that_are_damaged_are_none),
		cmocka_unit_test(test_json_says_the_language),
		cmocka_unit_test(test_interpreted_frames_that_nobody_looks_after_have_no_names),
		cmocka_unit_test(test_text_names_packages_of_the_jdk_and_lines_of_others),
		cmocka_unit_test(test_where_nothing_is_live_it_is_said_who_allocates),
		cmocka_unit_test(test_nettys_allocator_is_not_who_holds),
		cmocka_unit_test(test_java_names_come_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
