/* SPDX-License-Identifier: MIT */
/* Mappings of files, which are in no figure of memory; and the report that is about them. */
#include "exchange/profile_comments.h"
#include "exchange/report_speedscope.h"
#include "live/live_heap.h"
#include "views.h"

#define MIB (1ull << 20)

/* Of one stack 3 MiB of memory in three blocks, one of which is freed, and 300 MiB of files, of which 100 went; of
 * another 50 MiB of files. */
static void build(struct dump_builder *b, uint32_t rate)
{
	dump_builder_init(b, rate, 64, 8, 1);
	const uint32_t memory = dump_builder_stack(b, frames_a, 2, 0),
		       files = dump_builder_stack(b, frames_a, 2, DUMP_STACK_FILE),
		       other = dump_builder_stack(b, frames_b, 2, DUMP_STACK_FILE);

	dump_builder_module(b, 1, 0, 0x400000, 0x500000, "/usr/bin/a", NULL, 0, 0);
	dump_builder_header(b)->features |= DUMP_FEATURE_FILES;
	dump_builder_header(b)->session_flags = DUMP_SESSION_MMAP;
	dump_builder_header(b)->private_start_bytes = 100 * MIB;
	dump_builder_header(b)->private_latest_bytes = 102 * MIB;
	sample(b, memory, MIB, rate, 1, 0);
	sample(b, files, 200 * MIB, rate, 2, 0);
	sample(b, memory, MIB, rate, 2, 0);
	sample(b, other, 50 * MIB, rate, 9, 0);
	sample(b, memory, MIB, rate, 1, 5);
	sample(b, files, 100 * MIB, rate, 1, 5);
}

static void count_comment(void *to, const char *text)
{
	*(unsigned *)to += strstr(text, "mappings of files") != NULL;
}

/* Profiles for other tools have no other place that says it. */
static unsigned comments_on_files(const struct report *r)
{
	unsigned count = 0;

	profile_comments(r, count_comment, &count);
	return count;
}

static void test_memory_has_no_files(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	build(&b, 1);
	make(&r, &b, (struct report_options){ 0 });
	assert_int_equal(r.rows.count, 1);
	assert_true(r.total.sum[FIGURE_LIVE_BYTES].value == 2 * MIB);
	assert_true(r.total.sum[FIGURE_ALLOCATED_BYTES].value == 3 * MIB);
	assert_true(r.total.sum[FIGURE_LIVE_COUNT].value == 2);
	assert_true(r.beside.sum[FIGURE_LIVE_BYTES].value == 250 * MIB);
	assert_true(r.beside.sum[FIGURE_LIVE_COUNT].value == 2);
	assert_true(r.beside.sum[FIGURE_ALLOCATED_BYTES].value == 350 * MIB);
	assert_true(r.beside.sum[FIGURE_ALLOCATED_COUNT].value == 3);
	assert_true(report_estimate(&r, &r.beside, FIGURE_LIVE_BYTES).exact);
	assert_true(r.memory.live.value == 2 * MIB && r.memory.seen.value == 3 * MIB);
	assert_says(text_of(&r), "\n  mapped files              250 MiB   exact\n"
	                         "  mappings of files               2   exact\n");
	assert_says(text_of(&r), "address space, in no other figure: --mapped-files has its stacks\n");
	assert_says(json_of(&r), "\"of\": \"memory\"");
	assert_int_equal(comments_on_files(&r), 0);
	assert_says(json_of(&r), "\"mapped_files\": {\n    \"live_bytes\": {");
	report_done(&r);
	brief = true;
	make(&r, &b, (struct report_options){ 0 });
	assert_says(text_of(&r), "Of what was allocated since the attach, exactly 2.00 MiB is still live");
	assert_says(text_of(&r), "  mapped files   250 MiB   exact                    2 mappings");
	report_done(&r);
	brief = false;
	/* Two moments have no such line, nor has a time. */
	make(&r, &b, (struct report_options){ .at_ns = 10000000000u });
	assert_says_not(text_of(&r), "mapped files");
	assert_true(r.total.sum[FIGURE_LIVE_BYTES].value == 2 * MIB);
	report_done(&r);
	make(&r, &b, (struct report_options){ .since_ns = 1500000000u });
	assert_true(r.total.sum[FIGURE_LIVE_BYTES].value == 2 * MIB && r.total.change->plus[0].value == MIB);
	report_done(&r);
	make(&r, &b, (struct report_options){ .by = BY_SIZE });
	assert_true(r.classes.sizes[class_of(CLASS_SIZE, MIB)].sum[FIGURE_LIVE_BYTES].value == 2 * MIB);
	assert_true(r.classes.sizes[class_of(CLASS_SIZE, 50 * MIB)].sum[FIGURE_LIVE_BYTES].samples == 0);
	report_done(&r);
	dump_builder_done(&b);
}

static void test_files_have_no_memory(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	build(&b, 1);
	dump_builder_sample(&b, dump_builder_header(&b)->unknown_stack = dump_builder_stack(&b, NULL, 0, 0), MIB, 1, 1);
	make(&r, &b, (struct report_options){ .files = true });
	assert_int_equal(r.rows.count, 2);
	assert_true(r.total.sum[FIGURE_LIVE_BYTES].value == 250 * MIB);
	assert_true(row_with(&r, 0x400100)->sum[FIGURE_LIVE_BYTES].value == 200 * MIB);
	assert_true(row_with(&r, 0x400100)->sum[FIGURE_ALLOCATED_BYTES].value == 300 * MIB);
	assert_true(row_with(&r, 0x400300)->sum[FIGURE_LIVE_BYTES].value == 50 * MIB);
	assert_true(r.beside.sum[FIGURE_LIVE_BYTES].value == 3 * MIB);
	assert_false(r.memory.known); /* no sum of what is resident is closed by them */
	assert_false(r.resident.known);
	assert_says(text_of(&r), "mappings of files: address space");
	assert_says_not(text_of(&r), "--mapped-files has");
	assert_says(json_of(&r), "\"of\": \"mapped-files\"");
	assert_int_equal(comments_on_files(&r), 1);
	assert_says(json_of(&r), "\"mapped_files\": null");
	report_done(&r);
	brief = true;
	make(&r, &b, (struct report_options){ .files = true });
	assert_says(text_of(&r), "Of the mappings of files since the attach, exactly 250 MiB is still mapped");
	assert_says(text_of(&r), "  still mapped   250 MiB   exact                    2 mappings");
	assert_says(text_of(&r), "  mapped         350 MiB   exact                    3 mappings");
	report_done(&r);
	brief = false;
	make(&r, &b, (struct report_options){ .files = true, .at_ns = 3000000000u });
	assert_true(r.total.sum[FIGURE_LIVE_BYTES].value == 300 * MIB);
	report_done(&r);
	dump_builder_done(&b);
}

/* No view sets them beside private memory. */
static void test_no_form_mixes_them_with_memory(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	build(&b, 1);
	for (int files = 0; files < 2; files++) {
		char *text;
		size_t size;

		make(&r, &b, (struct report_options){ .files = files, .by = BY_PROCESS });
		if (files)
			assert_says_not(text_of(&r), "private memory");
		else
			assert_says(text_of(&r), "private memory +");
		report_done(&r);
		make(&r, &b, (struct report_options){ .files = files });
		FILE *out = open_memstream(&text, &size);
		assert_int_equal(report_speedscope(&r, "x", out), 0);
		fclose(out);
		assert_int_equal(strstr(text, "\"mappings of files: live bytes\"") != NULL, files);
		free(text);
		report_done(&r);
	}
	dump_builder_done(&b);
}

/* Without a mapping of a file nothing is said of them. */
static void test_no_files(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	dump_builder_sampler(&b);
	make(&r, &b, (struct report_options){ 0 });
	assert_says_not(text_of(&r), "mapped");
	assert_says(json_of(&r), "\"mapped_files\": null");
	report_done(&r);
	make(&r, &b, (struct report_options){ .files = true });
	assert_int_equal(r.rows.count, 0);
	report_done(&r);
	brief = true;
	make(&r, &b, (struct report_options){ .files = true });
	assert_says(text_of(&r), "Of the mappings of files since the attach, no sample is mapped");
	report_done(&r);
	brief = false;
	dump_builder_done(&b);
}

static void test_intervals_of_files(void **state)
{
	struct dump_builder b;
	struct estimate x;
	struct report r;

	(void)state;
	build(&b, 1u << 28);
	make(&r, &b, (struct report_options){ 0 });
	x = report_estimate(&r, &r.beside, FIGURE_LIVE_BYTES);
	assert_true(!x.exact && x.low < x.value && x.value < x.high && x.low >= 250 * MIB);
	report_done(&r);
	make(&r, &b, (struct report_options){ .files = true });
	struct estimate total = report_estimate(&r, &r.total, FIGURE_LIVE_BYTES);
	assert_true(total.value == x.value && total.low == x.low && total.high == x.high);
	report_done(&r);
	dump_builder_done(&b);
}

static void test_the_live_view_has_memory(void **state)
{
	struct dump_builder b;
	struct live_heap h;
	double live = 0, allocated = 0;

	(void)state;
	build(&b, 1);
	struct dump *dump = open_built(&b);
	assert_int_equal(live_heap_init(&h, NULL), 0);
	bool anew;
	assert_int_equal(live_heap_look(&h, dump, &anew), 0);
	for (size_t i = 0; i < h.count; i++) {
		live += h.list[i].live[0].value;
		allocated += h.list[i].allocated;
	}
	assert_true(live == 2 * MIB && allocated == 3 * MIB);
	live_heap_done(&h);
	dump_close(dump);
	dump_builder_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_has_no_files),
		cmocka_unit_test(test_files_have_no_memory),
		cmocka_unit_test(test_no_form_mixes_them_with_memory),
		cmocka_unit_test(test_no_files),
		cmocka_unit_test(test_intervals_of_files),
		cmocka_unit_test(test_the_live_view_has_memory),
	};

	return cmocka_run_group_tests_name("mapped_files", tests, NULL, NULL);
}
