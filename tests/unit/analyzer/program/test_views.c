/* SPDX-License-Identifier: MIT */
/* Groups, threads, memory that is not seen, slack: from dumps that are built to known figures. */
#include "symbols/symbol_section.h"
#include "views.h"

static void test_groups(void **state)
{
	const uint64_t recursive[] = { DUMP_FRAME(1, 0x400300), DUMP_FRAME(1, 0x400200), DUMP_FRAME(1, 0x400200) };
	struct dump_builder b;
	struct report r;

	(void)state;
	dump_builder_init(&b, 1, 64, 8, 1);
	uint32_t s = dump_builder_stack(&b, frames_a, 2, 0);
	uint32_t t = dump_builder_stack(&b, recursive, 3, 0);
	dump_builder_module(&b, 1, 0, 0x400000, 0x500000, "/usr/bin/a", NULL, 0, 0);
	dump_builder_sample(&b, s, 1000, 1, 1);
	dump_builder_sample(&b, t, 10, 1, 1);
	make(&r, &b, (struct report_options){ .by = BY_FUNCTION });
	assert_int_equal(r.groups.count, 3);
	/* Who calls the allocator first, who only passes on last. */
	assert_string_equal(r.groups.list[2].name, "+0x400200");
	assert_true(r.groups.list[2].inclusive[FIGURE_LIVE_BYTES].value == 1010); /* recursion counts once */
	assert_true(r.groups.list[2].exclusive[FIGURE_LIVE_BYTES].value == 0);
	assert_true(r.groups.list[0].exclusive[FIGURE_LIVE_BYTES].value == 1000);
	assert_says(text_of(&r), "inclusive");
	assert_says(json_of(&r), "\"by\": \"function\"");
	report_done(&r);
	make(&r, &b, (struct report_options){ .by = BY_MODULE });
	assert_int_equal(r.groups.count, 1);
	assert_string_equal(r.groups.list[0].name, "/usr/bin/a");
	assert_true(r.groups.list[0].inclusive[FIGURE_LIVE_COUNT].value == 2);
	assert_true(r.groups.list[0].exclusive[FIGURE_LIVE_COUNT].value == 2);
	report_done(&r);
	dump_builder_done(&b);
}

static void test_memory_that_went_past(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	dump_builder_sampler(&b); /* about 10 MiB live */
	make(&r, &b, (struct report_options){ 0 });
	assert_false(r.memory.known);
	assert_says(json_of(&r), "\"memory\": null");
	report_done(&r);
	dump_builder_header(&b)->private_start_bytes = 1 << 20;
	dump_builder_header(&b)->private_latest_bytes = 12 << 20;
	make(&r, &b, (struct report_options){ 0 });
	assert_true(r.memory.known && !r.memory.mostly_unseen);
	report_done(&r);
	dump_builder_header(&b)->private_latest_bytes = 200 << 20;
	make(&r, &b, (struct report_options){ 0 });
	assert_true(r.memory.mostly_unseen);
	assert_says(text_of(&r), "private memory grew by 199 MiB, seen allocations explain 11.2 MiB at most");
	assert_says(text_of(&r), " (mmap by hand: memattach --mmap)\n");
	assert_says(json_of(&r), "\"mostly_unseen\": true");
	report_done(&r);
	dump_builder_header(&b)->session_flags = DUMP_SESSION_MMAP;
	make(&r, &b, (struct report_options){ 0 });
	assert_says_not(text_of(&r), "mmap by hand");
	report_done(&r);
	dump_builder_done(&b);
}

/* Private memory is none of it; a dump that does not know them is from before they were recorded. */
static void test_shared_memory_and_files(void **state)
{
	static const struct {
		uint64_t shared, files_start, files;
		const char *line, *json;
	} cases[] = {
		{ 601 << 20, 8 << 20, 20 << 20, "shared memory +600 MiB, files +12.0 MiB\n",
		  "\"shared_growth_bytes\": 629145600,\n    \"files_growth_bytes\": 12582912," },
		{ 601 << 20, 8 << 20, 12 << 20, "shared memory +600 MiB\n", "\"files_growth_bytes\": 4194304," },
		{ 5 << 20, 8 << 20, 20 << 20, "files +12.0 MiB\n", "\"shared_growth_bytes\": 4194304," },
		{ 0, 8 << 20, 1 << 20, NULL, "\"shared_growth_bytes\": -1048576," },
		{ 601 << 20, 0, 20 << 20, NULL, "\"shared_growth_bytes\": null,\n    \"files_growth_bytes\": null," },
		{ 601 << 20, 8 << 20, 0, NULL, "\"shared_growth_bytes\": null," },
	};
	struct dump_builder b;
	struct report r;
	char line[120];

	(void)state;
	dump_builder_sampler(&b);
	struct dump_header *h = dump_builder_header(&b);
	h->private_start_bytes = h->private_latest_bytes = 1 << 20;
	h->shared_start_bytes = 1 << 20;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		h->shared_end_bytes = cases[i].shared;
		h->files_start_bytes = cases[i].files_start;
		h->files_end_bytes = cases[i].files;
		for (int verbose = 0; verbose < 2; verbose++) {
			brief = !verbose;
			make(&r, &b, (struct report_options){ 0 });
			char *text = text_of(&r);
			snprintf(line, sizeof line, "%s%s",
			         verbose ? "  resident   " : "  the kernel says: ", cases[i].line ? cases[i].line : "");
			if (cases[i].line)
				assert_non_null(strstr(text, line));
			else
				assert_true(!strstr(text, "shared memory") && !strstr(text, "files +"));
			free(text);
			assert_says(json_of(&r), cases[i].json);
			report_done(&r);
		}
	}
	brief = false;
	dump_builder_done(&b);
}

/* The kernel was asked a moment before the end; what the process freed then was private memory still. */
static void test_memory_of_a_process_that_has_ended(void **state)
{
	const uint64_t frames[] = { DUMP_FRAME(1, 0x400100) };
	struct dump_builder b;
	struct report r;

	(void)state;
	dump_builder_init(&b, 1, 64, 8, 2);
	dump_builder_sample(&b, dump_builder_stack(&b, frames, 1, 0), 100 << 20, 1, 0);
	dump_builder_header(&b)->private_start_bytes = 1 << 20;
	dump_builder_header(&b)->private_latest_bytes = 101 << 20;
	make(&r, &b, (struct report_options){ 0 });
	assert_false(r.memory.mostly_unseen); /* it was seen, and freed */
	assert_int_equal(r.memory.verdict, KERNEL_FREED);
	report_done(&r);
	dump_builder_header(&b)->state = DUMP_STATE_EXITED;
	make(&r, &b, (struct report_options){ 0 });
	assert_true(r.memory.known && !r.memory.mostly_unseen);
	char *text = text_of(&r);
	assert_null(strstr(text, "the kernel says"));
	free(text);
	report_done(&r);
	dump_builder_header(&b)->private_latest_bytes = 300 << 20;
	make(&r, &b, (struct report_options){ 0 });
	assert_says(text_of(&r), "private memory grew by 299 MiB, seen allocations explain 100 MiB at most");
	report_done(&r);
	dump_builder_done(&b);
}

static void test_fragmentation(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	dump_builder_init(&b, 1, 64, 8, 1);
	uint32_t s = dump_builder_stack(&b, frames_a, 2, 0);
	for (uint64_t i = 0; i < 10; i++) {
		dump_builder_sample(&b, s, 100, 1, 1);
		live_record(&b, i)->usable = i == 9 ? 0 : 104; /* one is not known */
	}
	make(&r, &b, (struct report_options){ 0 });
	assert_true(r.total.slack.sum.value == 36 && r.total.slack.requested == 900);
	assert_says(text_of(&r), "the allocator adds 36 B to 900 B requested (4.00 %)  exact\n");
	assert_says(json_of(&r), "\"slack_bytes\"");
	report_done(&r);
	/* By function, too: inclusive everywhere, exclusive in the caller of the allocator. */
	make(&r, &b, (struct report_options){ .by = BY_FUNCTION });
	assert_int_equal(r.groups.count, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct group *g = &r.groups.list[i];
		bool own = !strcmp(g->name, "+0x400100") || !strcmp(g->name, "0x400100");
		assert_true(g->slack_inclusive.sum.value == 36 && g->slack_inclusive.requested == 900);
		assert_true(g->slack_exclusive.sum.value == (own ? 36 : 0));
	}
	assert_says(text_of(&r), "        1000 B  exact                            1000 B  0x400100\n");
	report_done(&r);
	dump_builder_done(&b);
}

/* Code that the process has made: what would help is said where it matters. */
static void test_own_code(void **state)
{
	static const char cut[] = "%s of the samples have a stack that ends in code which the process has made itself";
	const uint64_t made[] = { DUMP_FRAME(1, 0x400100), DUMP_FRAME(0, 0x7f0000001000) };
	char expected[200];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct dump_builder b;
		struct report r;
		dump_builder_init(&b, RATE, 256, 16, 0);
		dump_builder_module(&b, 1, 0, 0x400000, 0x500000, "/opt/engine", NULL, 0, 0);
		uint32_t lost = dump_builder_stack(&b, made, 2, DUMP_STACK_TRUNCATED);
		uint32_t whole = dump_builder_stack(&b, frames_a, 2, 0);
		for (int k = 0; k < 20; k++)
			dump_builder_sample(&b, k <= i ? lost : whole, 4096, RATE, 1);
		make(&r, &b, (struct report_options){ .symbols = true });
		assert_int_equal(r.own_code.samples, 20);
		assert_int_equal(r.own_code.cut, i + 1);
		assert_int_equal(r.own_code.unnamed, i + 1);
		snprintf(expected, sizeof expected, cut, "10.0 %");
		if (i)
			assert_says(text_of(&r), expected);
		else
			assert_says_not(text_of(&r), strchr(cut, 'o'));
		(i ? assert_says : assert_says_not)(text_of(&r), "--perf-basic-prof");
		assert_says(text_of(&r), "        [jit]\n");
		report_done(&r);
		dump_builder_done(&b);
	}
}

/* Some of it has a name: there is a map already. */
static void test_map_lacks_own_code(void **state)
{
	const uint64_t unnamed[] = { DUMP_FRAME(1, 0x400100), DUMP_FRAME(0, 0x7f0000001000) };
	const uint64_t named[] = { DUMP_FRAME(1, 0x400100), DUMP_FRAME(0, 0x7f0000002000) };
	const struct location name = { .function = "made_here" };
	struct symbol_section names;
	struct dump_builder b;
	struct report r;

	(void)state;
	dump_builder_init(&b, RATE, 256, 16, 0);
	dump_builder_module(&b, 1, 0, 0x400000, 0x500000, "/opt/engine", NULL, 0, 0);
	dump_builder_sample(&b, dump_builder_stack(&b, unnamed, 2, 0), 4096, RATE, 1);
	dump_builder_sample(&b, dump_builder_stack(&b, named, 2, 0), 4096, RATE, 1);
	symbol_section_init(&names, 4096);
	symbol_section_place(&names, named[1], 0, &name, 1);
	struct dump_symbols *s = symbol_section_build(&names);
	assert_non_null(s);
	dump_builder_symbols(&b, s, s->bytes);
	make(&r, &b, (struct report_options){ .symbols = true });
	assert_true(r.own_code.named);
	assert_int_equal(r.own_code.unnamed, 1);
	assert_says(text_of(&r),
	            "50.0 % of the samples have such code without a name in their stack, [jit]: the map for perf");
	assert_says_not(text_of(&r), "--perf-basic-prof");
	report_done(&r);
	free(s);
	symbol_section_done(&names);
	dump_builder_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_memory_that_went_past),
		cmocka_unit_test(test_shared_memory_and_files),
		cmocka_unit_test(test_memory_of_a_process_that_has_ended),
		cmocka_unit_test(test_fragmentation),
		cmocka_unit_test(test_own_code),
		cmocka_unit_test(test_map_lacks_own_code),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
