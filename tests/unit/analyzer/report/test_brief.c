/* SPDX-License-Identifier: MIT */
/* The text report of a heap in a few lines: what it says first, and what it must not leave out. */
#include "views.h"

static size_t lines_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void assert_in_order(const char *text, const char *const *parts, size_t count)
{
	const char *at = text;

	for (size_t i = 0; i < count; i++) {
		at = strstr(at, parts[i]);
		if (!at)
			fail_msg("no \"%s\" in its place in:\n%s", parts[i], text);
	}
}

static void build(struct dump_builder *b, uint32_t rate)
{
	dump_builder_init(b, rate, 64, 8, 1);
	uint32_t s = dump_builder_stack(b, frames_a, 2, 0);
	uint32_t t = dump_builder_stack(b, frames_b, 2, 0);
	dump_builder_module(b, 1, 0, 0x400000, 0x500000, "/usr/bin/a", NULL, 0, 0);
	for (int i = 0; i < 9; i++)
		sample(b, s, 1 << 20, rate, 1, 0);
	for (int i = 0; i < 3; i++)
		sample(b, t, 1 << 20, rate, 1, 2);
	dump_builder_header(b)->private_start_bytes = 1 << 20;
	dump_builder_header(b)->private_latest_bytes = 11 << 20;
}

static void test_the_verdict_comes_first(void **state)
{
	static const char *const exact[] = {
		"leaky (PID 812 on build7), 30.0 s from ",
		"x.dump\n\nOf what was allocated since the attach, exactly 9.00 MiB is still live.\n\n",
		"  still live    9.00 MiB   exact                    9 blocks                            307 KiB/s\n",
		"  allocated     12.0 MiB   exact                    12 blocks                           410 KiB/s, "
		"75.0 % kept\n",
		"  the kernel says: +10.0 MiB private memory: agrees\n\n",
		"Held by, innermost function first\n",
		"kept    blocks      each samples\n",
		"\n  1  9.00 MiB  exact                100.0 % 100.0 %         9  1.00 MiB       9\n     a+0x400100\n",
		"\n\nSeen: only what was allocated meanwhile. Trust: measured, every allocation; 0 lost.\n",
		"Next: memanalyze -o heap.html x.dump (flame graph) | memanalyze --leaks x.dump | "
		"memanalyze --verbose x.dump\n"
	};
	struct dump_builder b;
	struct report r;

	(void)state;
	build(&b, 1);
	make(&r, &b, (struct report_options){ 0 });
	char *text = text_of(&r);
	assert_in_order(text, exact, sizeof exact / sizeof exact[0]);
	assert_true(lines_of(text) < 25);
	free(text);
	report_done(&r);
	make(&r, &b, (struct report_options){ .sort = FIGURE_ALLOCATED_COUNT });
	assert_says(text_of(&r), "Since the attach, exactly 12.0 MiB was allocated.\n");
	assert_says(text_of(&r), "\nAllocated by, innermost function first\n");
	assert_says(text_of(&r), "\n  2         3  exact                 25.0 %   0.0 %  3.00 MiB  1.00 MiB       3\n");
	report_done(&r);
	dump_builder_done(&b);
	build(&b, RATE);
	make(&r, &b, (struct report_options){ .at_ns = 10000000000u });
	assert_says(text_of(&r), "the heap as it was 10 s after the attach");
	assert_says(text_of(&r), ", 95 % sure) was live.\n");
	assert_says(text_of(&r),
	            "    no sample in 1 stack: it and all unseen stacks hold less than 236 KiB together\n");
	assert_says(text_of(&r), "are few: record for ");
	assert_says(text_of(&r), " blocks (9 or more) ");
	report_done(&r);
	make(&r, &b, (struct report_options){ .since_ns = 10000000000u });
	assert_says(text_of(&r),
	            "\nNext: memanalyze -o growth.html --since 10s x.dump (flame graph) | memanalyze --leaks x.dump\n");
	report_done(&r);
	make(&r, &b, (struct report_options){ .leaks = true });
	assert_says(text_of(&r), "\n\nNo stack leaks for certain.\n\n");
	assert_says(text_of(&r),
	            "\nNext: memanalyze -o heap.html x.dump (flame graph) | memanalyze --timeline x.dump\n");
	report_done(&r);
	make(&r, &b, (struct report_options){ .filter = { .size_high = 10 } });
	assert_says(text_of(&r), "Of what the filter keeps, no sample is live: it is less than 236 KiB, 95 % sure.\n");
	report_done(&r);
	dump_builder_done(&b);
}

/* In 80 columns there is room for one interval, that of the growth. */
static void test_narrow_comparisons(void **state)
{
	struct dump_builder b;
	struct report r;
	char *text;
	size_t size;

	(void)state;
	build(&b, RATE);
	make(&r, &b, (struct report_options){ .since_ns = 10000000000u });
	FILE *out = open_memstream(&text, &size);
	report_text(&r, "x.dump", out, (struct text_style){ .columns = 80 });
	fclose(out);
	assert_non_null(strstr(text, "  estimate         growth  95 % interval\n  live bytes  "));
	for (const char *line = strstr(text, "\n  live bytes") + 1, *end;
	     !strncmp(line, "  live", 6) || !strncmp(line, "  alloc", 7); line = end + 1) {
		end = strchr(line, '\n');
		assert_true(end - line <= 80 && strncmp(end + 1, "   ", 3) != 0);
	}
	free(text);
	report_done(&r);
	dump_builder_done(&b);
}

/* At the rate 1 nothing is hidden. */
static void test_nothing_is_nothing(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	build(&b, 1);
	make(&r, &b, (struct report_options){ .filter = { .size_high = 10 } });
	assert_says(text_of(&r), "Of what the filter keeps, nothing is live.\n");
	report_done(&r);
	make(&r, &b, (struct report_options){ .filter = { .size_high = 10 }, .sort = FIGURE_ALLOCATED_BYTES });
	assert_says(text_of(&r), "Of what the filter keeps, nothing was allocated.\n");
	report_done(&r);
	dump_builder_done(&b);
}

static void assert_kernel(uint64_t latest, const char *what)
{
	struct dump_builder b;
	struct report r;

	build(&b, 1);
	dump_builder_header(&b)->private_latest_bytes = latest;
	make(&r, &b, (struct report_options){ 0 });
	assert_says(text_of(&r), what);
	report_done(&r);
	dump_builder_done(&b);
}

/* Nothing is live, and what there may be unseen is as much as the memory that came. */
static void test_the_kernel_may_tell_nothing(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	dump_builder_init(&b, RATE, 64, 8, 1);
	sample(&b, dump_builder_stack(&b, frames_a, 2, 0), 1 << 20, RATE, 1, 2);
	dump_builder_header(&b)->private_start_bytes = 1 << 20;
	dump_builder_header(&b)->private_latest_bytes = 5 << 20;
	make(&r, &b, (struct report_options){ 0 });
	assert_says(text_of(&r), "to compare\n");
	report_done(&r);
	dump_builder_done(&b);
}

static void test_the_kernel_may_not_agree(void **state)
{
	(void)state;
	assert_kernel(13 << 20, "+12.0 MiB private memory: agrees\n");
	assert_kernel(16 << 20,
	              "+15.0 MiB private memory: more than is live: what was seen and freed may not have been ");
	assert_kernel(19 << 20, "+18.0 MiB private memory: more than was seen\n");
	assert_kernel(1 << 20, "0 B private memory: less than is live: memory from before was used again");
	assert_kernel(1 << 30, "private memory grew by 1023 MiB, seen allocations explain 12.0 MiB at most");
}

/* What sampling has cost is told in what its limit is of: a process that uses less than a fifth of a processor counts
 * as one that uses that. */
static void test_cost_is_told_as_its_limit_is(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	build(&b, RATE);
	dump_builder_header(&b)->max_overhead_ppm = 10000;
	dump_builder_header(&b)->cpu_ns = 3000000000;
	dump_builder_header(&b)->cost_ns = 45000000;
	make(&r, &b, (struct report_options){ 0 });
	assert_says(text_of(&r), "; cost 0.15 % of a CPU; 0 lost.");
	report_done(&r);
	brief = false;
	make(&r, &b, (struct report_options){ 0 });
	assert_says(text_of(&r), "sampling took 1.50 % of the process's CPU time, 0.15 % of a CPU (limit 1 %, of a "
	                         "fifth of a CPU at least)\n");
	report_done(&r);
	brief = true;
	dump_builder_header(&b)->cpu_ns = 15000000000;
	dump_builder_header(&b)->cost_ns = 120000000;
	make(&r, &b, (struct report_options){ 0 });
	assert_says(text_of(&r), "; cost 0.80 % CPU; 0 lost.");
	report_done(&r);
	const struct dump_header *h = dump_builder_header(&b);
	double stamps = (double)(h->clock_latest.stamp - h->clock_start.stamp),
	       ns = (double)(h->clock_latest.monotonic_ns - h->clock_start.monotonic_ns);
	dump_builder_header(&b)->mapping_cycles = (uint64_t)((double)h->cpu_ns * 0.022 / ns * stamps);
	dump_builder_header(&b)->counters[3][DUMP_COUNTER_lost_mappings] = 1234567;
	make(&r, &b, (struct report_options){ 0 });
	assert_says(text_of(&r), "; cost 0.80 % CPU + 2.20 % CPU for mappings; 0 lost.\n");
	assert_says(text_of(&r),
	            "\n  lost       mappings not followed: parts of them that go are not seen: 1,234,567\n");
	assert_says(json_of(&r), "\"lost_mappings\": 1234567");
	report_done(&r);
	dump_builder_done(&b);
}

/* What is wrong is said before the figures, also without --verbose, and once; what stacks lack comes at the end. */
static void test_warnings_come_before_the_figures(void **state)
{
	static const char *const parts[] = { "at least ",
		                             "still live.\n\n  TRUST",
		                             "a LOWER BOUND\n",
		                             "INCOMPLETE samples were lost",
		                             "3\n",
		                             "not seen   libodd.so is bound otherwise",
		                             "damage ",
		                             "\n\n  still live",
		                             "   lower bound\n",
		                             "Held by",
		                             "; 3 lost.",
		                             "  stacks     libbare.so has no table\n" };
	struct dump_builder b;
	struct report r;

	(void)state;
	build(&b, RATE);
	dump_builder_header(&b)->counters[1][DUMP_COUNTER_lost_busy] = 3;
	dump_builder_note(&b, DUMP_NOTE_NO_UNWIND, "libbare.so has no table");
	dump_builder_note(&b, DUMP_NOTE_NOT_PATCHED, "libodd.so is bound otherwise");
	live_record(&b, 3)->stack = 12345; /* there is no such one */
	make(&r, &b, (struct report_options){ 0 });
	char *text = text_of(&r);
	assert_in_order(text, parts, sizeof parts / sizeof parts[0]);
	assert_null(strstr(text, "Trust: "));
	assert_null(strstr(text, "the allocations of some modules are not seen"));
	free(text);
	report_done(&r);
	dump_builder_header(&b)->state = DUMP_STATE_KILLED;
	dump_builder_header(&b)->end_detail = 9;
	make(&r, &b, (struct report_options){ 0 });
	assert_says(text_of(&r), ", target killed by signal 9 (SIGKILL)  x.dump\n");
	report_done(&r);
	dump_builder_done(&b);
}

/* Notes of one reason are one sentence; with --verbose and in JSON they are each.
 */
static void test_notes_of_one_reason_are_one(void **state)
{
	struct dump_builder b;
	struct report r;
	char note[80];

	(void)state;
	build(&b, RATE);
	for (unsigned i = 0; i < 20; i++) {
		snprintf(note, sizeof note, "m%u.so: free not patched: so", i);
		dump_builder_note(&b, DUMP_NOTE_NOT_PATCHED, note);
		snprintf(note, sizeof note, "m%u.so has no unwind table: stacks through it may end early", i);
		dump_builder_note(&b, DUMP_NOTE_NO_UNWIND, note);
	}
	dump_builder_note(&b, DUMP_NOTE_NOT_PATCHED, "libodd.so is bound otherwise");
	make(&r, &b, (struct report_options){ 0 });
	char *text = text_of(&r);
	assert_non_null(strstr(text, "\n  not seen   calls of free from m0.so, m1.so, m2.so and 17 more modules: so "
	                             "(--verbose names each)\n  not seen   libodd.so is bound otherwise\n"));
	assert_non_null(strstr(text, "\n  stacks     m0.so, m1.so, m2.so and 17 more modules have no unwind table: "
	                             "stacks through them may end early (--verbose names each)\n"));
	free(text);
	assert_says(json_of(&r), "\"m19.so: free not patched: so\"");
	report_done(&r);
	brief = false;
	make(&r, &b, (struct report_options){ 0 });
	brief = true;
	text = text_of(&r);
	assert_non_null(strstr(text, "\n  not seen   m5.so: free not patched: so\n"));
	assert_non_null(strstr(text, "\n  stacks     m5.so has no unwind table: stacks through it may end early\n"));
	free(text);
	report_done(&r);
	dump_builder_done(&b);
}

static void test_names_are_plain_in_what_to_do_next(void **state)
{
	struct dump_builder b;
	struct report r;
	char *text;
	size_t size;

	(void)state;
	build(&b, 1);
	make(&r, &b, (struct report_options){ 0 });
	FILE *out = open_memstream(&text, &size);
	report_text(&r, "x; rm -rf \033[1m", out, (struct text_style){ 0 });
	fclose(out);
	assert_null(strchr(text, '\033'));
	assert_null(strstr(text, "--leaks x"));
	assert_says(text, "Next: memanalyze -o heap.html DUMP (flame");
	report_done(&r);
	dump_builder_done(&b);
}

static char *text_in(const struct report *r, size_t columns)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	report_text(r, "a/very/long/name/of/a/dump/that/is/kept.dump", out, (struct text_style){ .columns = columns });
	fclose(out);
	return text;
}

static size_t widest(const char *text)
{
	size_t most = 0;

	for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
		size_t n = 0;
		for (const char *s = line; *s != '\n'; s++)
			n += ((unsigned char)*s & 0xc0) != 0x80;
		most = n > most ? n : most;
	}
	return most;
}

/* Names stand below the figures on a narrow terminal, beside them on a wide one; no line is wider than it. */
static void test_the_layout_follows_the_terminal(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	build(&b, RATE);
	make(&r, &b, (struct report_options){ 0 });
	for (size_t columns = 60; columns < 250; columns += 10) {
		char *text = text_in(&r, columns);
		assert_true(widest(text) <= columns);
		assert_true(!strstr(text, "\n     a+0x400100\n") == (columns >= 140));
		assert_true(!strstr(text, "       9  a+0x400100\n") == (columns < 140));
		free(text);
	}
	assert_says(text_in(&r, 80),
	            "\nOf what was allocated since the attach, about 9.00 MiB (9.00 MiB .. 9.23 MiB,\n    95 % sure)");
	assert_says(text_in(&r, 80), "307 KiB/s\n                           9 blocks (9 or more)\n");
	report_done(&r);
	dump_builder_done(&b);
}

/* Both stacks have one outer function, which is shown once with what both hold. */
static void test_functions_below_their_callers(void **state)
{
	static const char *const parts[] = { "\n  9.00 MiB  9.00 MiB .. 9.23 MiB", " 100.0 %  a+0x400200\n",
		                             " 100.0 %  a+0x400100\n" };
	static const char *const both[] = { "Allocated by, functions below their callers\n", " 100.0 %  a+0x400200\n",
		                            "  75.0 %    a+0x400100\n", "  25.0 %    a+0x400300\n", "\nSeen: " };
	struct dump_builder b;
	struct report r;

	(void)state;
	build(&b, RATE);
	make(&r, &b, (struct report_options){ .tree = true });
	char *text = text_of(&r);
	assert_in_order(text, parts, sizeof parts / sizeof parts[0]);
	assert_null(strstr(text, "0x400300"));
	free(text);
	report_done(&r);
	make(&r, &b, (struct report_options){ .tree = true, .sort = FIGURE_ALLOCATED_BYTES });
	text = text_of(&r);
	assert_in_order(text, both, sizeof both / sizeof both[0]);
	free(text);
	report_done(&r);
	dump_builder_done(&b);
}

static void test_long_stacks_are_cut(void **state)
{
	uint64_t deep[40];
	struct dump_builder b;
	struct report r;

	(void)state;
	for (size_t i = 0; i < 40; i++)
		deep[i] = DUMP_FRAME(1, 0x400100 + 16 * i);
	dump_builder_init(&b, 1, 64, 8, 1);
	dump_builder_sample(&b, dump_builder_stack(&b, deep, 40, 0), 10, 1, 1);
	make(&r, &b, (struct report_options){ 0 });
	char *text = text_of(&r);
	assert_true(lines_of(text) < 25);
	assert_says(text, "< ... (--verbose or --depth: more)\n");
	report_done(&r);
	make(&r, &b, (struct report_options){ .depth = 40 });
	text = text_of(&r);
	assert_true(lines_of(text) > 40);
	assert_says(text, "0x400370");
	report_done(&r);
	dump_builder_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_verdict_comes_first),
		cmocka_unit_test(test_nothing_is_nothing),
		cmocka_unit_test(test_narrow_comparisons),
		cmocka_unit_test(test_the_kernel_may_tell_nothing),
		cmocka_unit_test(test_the_kernel_may_not_agree),
		cmocka_unit_test(test_cost_is_told_as_its_limit_is),
		cmocka_unit_test(test_warnings_come_before_the_figures),
		cmocka_unit_test(test_notes_of_one_reason_are_one),
		cmocka_unit_test(test_names_are_plain_in_what_to_do_next),
		cmocka_unit_test(test_the_layout_follows_the_terminal),
		cmocka_unit_test(test_functions_below_their_callers),
		cmocka_unit_test(test_long_stacks_are_cut),
	};
	brief = true;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
