/* SPDX-License-Identifier: MIT */
/* The sum of the resident memory: what it says, and what it does not say where it is not known. */
#include "views.h"

#define MIB (1ull << 20)

struct row {
	enum dump_memory_kind kind;
	uint64_t start, end; /* MiB */
	const char *name;
};

/* live: MiB of blocks that are live, all of them sampled. */
static void build(struct dump_builder *b, uint64_t live)
{
	dump_builder_init(b, 1, 1024, 8, 1);
	const uint32_t s = dump_builder_stack(b, frames_a, 2, 0);

	dump_builder_module(b, 1, 0, 0x400000, 0x500000, "/usr/bin/a", NULL, 0, 0);
	for (uint64_t i = 0; i < live; i++)
		sample(b, s, MIB, 1, 1, 0);
	dump_builder_header(b)->private_start_bytes = 100 * MIB;
	dump_builder_header(b)->private_latest_bytes = (100 + live) * MIB;
}

static void add_looks(struct dump_builder *b, const struct row *rows, size_t count, uint64_t start, uint64_t end,
                      uint64_t flags, const char *text)
{
	for (uint16_t moment = DUMP_MEMORY_START; moment <= DUMP_MEMORY_END; moment++) {
		for (size_t i = 0; i < count; i++)
			dump_builder_memory(b, moment, (uint16_t)rows[i].kind,
			                    (moment == DUMP_MEMORY_END ? rows[i].end : rows[i].start) * MIB,
			                    rows[i].name ? rows[i].name : "");
		dump_builder_look(b, moment, (moment == DUMP_MEMORY_END ? end : start) * MIB, flags, text);
	}
}

#define LOOKS(b, rows, start, end, flags, text)                                                                        \
	add_looks(b, rows, sizeof(rows) / sizeof *(rows), start, end, flags, text)

/* The line that begins with RSS, or NULL; to be freed. */
static char *line_of(struct dump_builder *b)
{
	struct report r;

	brief = true;
	make(&r, b, (struct report_options){ 0 });
	char *text = text_of(&r), *line = strstr(text, "\n  RSS ");
	report_done(&r);
	brief = false;
	if (!line) {
		free(text);
		return NULL;
	}
	memmove(text, line + 1, strlen(line));
	*strchr(text, '\n') = '\0';
	return text;
}

static void assert_line(struct dump_builder *b, const char *wanted)
{
	char *line = line_of(b);

	assert_non_null(line);
	assert_string_equal(line, wanted);
	free(line);
}

static void test_the_sum_closes(void **state)
{
	static const struct row rows[] = { { DUMP_MEMORY_LIVE, 80, 592, NULL },
		                           { DUMP_MEMORY_FREED, 10, 70, NULL },
		                           { DUMP_MEMORY_SHARED, 0, 28, "/memfd:cache" },
		                           { DUMP_MEMORY_FILES, 9, 9, "/usr/bin/a" } };
	struct dump_builder b;
	struct report r;

	(void)state;
	build(&b, 512);
	LOOKS(&b, rows, 99, 699, DUMP_LOOK_MALLOC, "");
	assert_line(
		&b,
		"  RSS           +600 MiB = 512 MiB live in malloc (stacks below) + 60.0 MiB freed, kept by malloc + "
		"28.0 MiB shared memory memfd:cache");
	make(&r, &b, (struct report_options){ 0 });
	assert_says(text_of(&r), "  resident    99.0 MiB ->   699 MiB  RSS, of which\n");
	assert_says(text_of(&r), "              80.0 MiB ->   592 MiB  live in malloc\n");
	assert_says_not(text_of(&r), "the kernel says");
	assert_says_not(text_of(&r), "private memory changed");
	assert_says(json_of(&r), "\"growth_bytes\": 629145600,");
	assert_says(json_of(&r), "\"kind\":\"shared\"");
	assert_says(json_of(&r), "\"live\": \"fits\",");
	report_done(&r);
	/* Of a part of the stacks, and of another moment, it says nothing. */
	make(&r, &b, (struct report_options){ .filter = { .size_high = 10 } });
	assert_says_not(text_of(&r), "\n  RSS ");
	report_done(&r);
	make(&r, &b, (struct report_options){ .at_ns = 10000000000u });
	assert_says_not(text_of(&r), "\n  RSS ");
	assert_false(r.resident.known);
	report_done(&r);
	dump_builder_done(&b);
}

static void test_what_is_freed_and_what_is_left(void **state)
{
	static const struct row freed[] = { { DUMP_MEMORY_LIVE, 5, 5, NULL }, { DUMP_MEMORY_FREED, 0, 700, NULL } };
	static const struct row shrinks[] = { { DUMP_MEMORY_LIVE, 150, 200, NULL },
		                              { DUMP_MEMORY_FREED, 60, 0, NULL } };
	struct dump_builder b;

	(void)state;
	build(&b, 0);
	LOOKS(&b, freed, 5, 717, DUMP_LOOK_MALLOC, "");
	assert_line(&b, "  RSS           +712 MiB = 700 MiB freed, kept by malloc + 12.0 MiB not attributed");
	dump_builder_done(&b);
	build(&b, 50);
	LOOKS(&b, shrinks, 210, 200, DUMP_LOOK_MALLOC, "");
	assert_line(
		&b,
		"  RSS          -10.0 MiB = -60.0 MiB freed, kept by malloc + 50.0 MiB live in malloc (stacks below)");
	dump_builder_done(&b);
}

/* What is live by samples is compared, and never said to be what it is not. */
static void test_what_is_live_is_judged(void **state)
{
	static const struct row more[] = { { DUMP_MEMORY_LIVE, 300, 350, NULL } };
	static const struct row less[] = { { DUMP_MEMORY_LIVE, 10, 210, NULL } };
	static const struct row other[] = { { DUMP_MEMORY_ANONYMOUS, 10, 582, NULL } };
	static const struct row stacks[] = { { DUMP_MEMORY_STACKS, 1, 101, NULL } };
	struct dump_builder b;
	struct report r;
	char *line;

	(void)state;
	build(&b, 340); /* 290 MiB of it in memory that was freed meanwhile */
	LOOKS(&b, more, 300, 350, DUMP_LOOK_MALLOC, "");
	assert_line(&b, "  RSS          +50.0 MiB = 50.0 MiB live in malloc");
	make(&r, &b, (struct report_options){ 0 });
	assert_says(text_of(&r), "the stacks below have at least 290 MiB more than that: ");
	report_done(&r);
	dump_builder_done(&b);
	build(&b, 100);
	LOOKS(&b, less, 10, 210, DUMP_LOOK_MALLOC, "");
	line = line_of(&b);
	assert_non_null(strstr(line,
	                       "= 200 MiB live in malloc (stacks below: 100 MiB of it; 100 MiB not seen, or not in "
	                       "the session)"));
	free(line);
	dump_builder_done(&b);
	build(&b, 512);
	LOOKS(&b, other, 10, 582, 0, "jemalloc");
	line = line_of(&b);
	assert_non_null(strstr(
		line, "= 572 MiB anonymous memory, of jemalloc and others (stacks below: 512 MiB of it; 60.0 MiB "
		      "freed and kept, or not seen)"));
	free(line);
	dump_builder_done(&b);
	/* Stacks are no allocations that went past. */
	build(&b, 0);
	dump_builder_header(&b)->private_latest_bytes = 200 * MIB;
	LOOKS(&b, stacks, 1, 101, DUMP_LOOK_MALLOC, "");
	assert_line(&b, "  RSS           +100 MiB = 100 MiB stacks of 1 thread");
	make(&r, &b, (struct report_options){ 0 });
	assert_false(r.memory.mostly_unseen);
	assert_false(r.trust.allocated.reasons & 1u << TRUST_MEMORY_UNSEEN);
	report_done(&r);
	dump_builder_done(&b);
}

/* --mmap: what it samples may be shared memory, or of what a runtime makes of it. */
static void test_mappings_are_looked_for_where_they_may_be(void **state)
{
	static const struct row rows[] = { { DUMP_MEMORY_SHARED, 0, 60, "/dev/shm/x" },
		                           { DUMP_MEMORY_RUNTIME, 10, 50, "V8" } };
	static const uint64_t lives[] = { 60, 100 };
	static const char *const lines[] = {
		"  RSS           +100 MiB = 60.0 MiB shared memory x (stacks below) + 40.0 MiB heap of V8",
		"  RSS           +100 MiB = 60.0 MiB shared memory x (stacks below) + 40.0 MiB heap of V8"
	};
	struct dump_builder b;
	struct report r;

	(void)state;
	for (int i = 0; i < 2; i++) {
		build(&b, lives[i]);
		LOOKS(&b, rows, 10, 110, 0, "");
		make(&r, &b, (struct report_options){ 0 });
		assert_says(json_of(&r), "\"live\": \"more\",");
		report_done(&r);
		dump_builder_header(&b)->session_flags = DUMP_SESSION_MMAP;
		assert_line(&b, lines[i]);
		make(&r, &b, (struct report_options){ 0 });
		assert_says(json_of(&r), "\"live\": \"fits\",");
		assert_int_equal(r.resident.terms[1].live, i == 1);
		report_done(&r);
		dump_builder_done(&b);
	}
}

/* One look had no time to tell private memory apart: nothing is said to have come from elsewhere. */
static void test_what_one_look_could_not_tell(void **state)
{
	static const struct row rows[] = {
		{ DUMP_MEMORY_UNKNOWN, 9000, 0, NULL },   { DUMP_MEMORY_MALLOC, 5, 4000, NULL },
		{ DUMP_MEMORY_ANONYMOUS, 5, 5100, NULL }, { DUMP_MEMORY_STACKS, 0, 10, NULL },
		{ DUMP_MEMORY_CODE, 1, 1, NULL },         { DUMP_MEMORY_FILES, 0, 40, "/a" }
	};
	struct dump_builder b;

	(void)state;
	build(&b, 100);
	LOOKS(&b, rows, 9011, 9151, 0, "");
	assert_line(
		&b,
		"  RSS           +140 MiB = 100 MiB several kinds that were not told apart (stacks below) + 40.0 MiB "
		"file a");
	dump_builder_done(&b);
}

/* What one of the looks could not tell apart is not told apart. */
static void test_what_is_not_known_is_summed_up(void **state)
{
	static const struct row start[] = { { DUMP_MEMORY_LIVE, 80, 0, NULL }, { DUMP_MEMORY_FREED, 20, 0, NULL } };
	static const struct row end[] = { { DUMP_MEMORY_MALLOC, 150, 150, NULL },
		                          { DUMP_MEMORY_PYTHON, 30, 30, NULL } };
	static const uint64_t flags[] = { 0, DUMP_LOOK_CONTENT_CUT };
	static const char *const lines[] = { "  RSS          +80.0 MiB = 50.0 MiB malloc's heap, live or freed: see "
		                             "--census (stacks below) + 30.0 MiB small objects of Python",
		                             "  RSS          +80.0 MiB = 80.0 MiB anonymous memory" };
	struct dump_builder b;

	(void)state;
	for (int i = 0; i < 2; i++) {
		build(&b, 50);
		for (int k = 0; k < 2; k++)
			dump_builder_memory(&b, DUMP_MEMORY_START, (uint16_t)start[k].kind, start[k].start * MIB, "");
		dump_builder_look(&b, DUMP_MEMORY_START, 100 * MIB, DUMP_LOOK_MALLOC, "");
		for (int k = 0; k < 2; k++)
			dump_builder_memory(&b, DUMP_MEMORY_END, (uint16_t)end[k].kind, end[k].end * MIB, "");
		dump_builder_look(&b, DUMP_MEMORY_END, 180 * MIB, flags[i], "");
		char *line = line_of(&b);
		assert_non_null(line);
		assert_memory_equal(line, lines[i], strlen(lines[i]));
		free(line);
		dump_builder_done(&b);
	}
}

/* Where one of the looks is not there, the kernel's line stays. */
static void test_without_both_looks_the_kernel_speaks(void **state)
{
	static const struct row rows[] = { { DUMP_MEMORY_LIVE, 1, 51, NULL } };
	struct dump_builder b;
	struct report r;

	(void)state;
	for (int i = 0; i < 4; i++) {
		build(&b, 50);
		if (i == 1)
			dump_builder_look(&b, DUMP_MEMORY_START, 0, DUMP_LOOK_FAILED, "it took too long");
		if (i > 0)
			LOOKS(&b, rows, 1, 51, DUMP_LOOK_MALLOC, "");
		if (i == 2)
			dump_builder_look(&b, DUMP_MEMORY_END, 0, DUMP_LOOK_FAILED, "it took\033[1m too long");
		if (i == 3) /* a later moment is none that this reader knows */
			dump_builder_memory(&b, 3, DUMP_MEMORY_LIVE, MIB, "");
		brief = true;
		make(&r, &b, (struct report_options){ 0 });
		brief = false;
		if (i == 1 || i == 3) {
			assert_true(r.resident.known); /* the last look of a moment is it */
			assert_int_equal(report_skipped(&r, DUMP_SKIP_memory), i == 3);
		} else {
			assert_false(r.resident.known);
			brief = true;
			assert_says(text_of(&r), "  the kernel says: +50.0 MiB private memory: agrees\n");
			brief = false;
			assert_says(json_of(&r), "\"resident\": {\n    \"known\": false");
		}
		report_done(&r);
		dump_builder_done(&b);
	}
}

/* More rows than memattach writes, of any size, are no reason to know anything. */
static void test_hostile_rows(void **state)
{
	struct dump_builder b;
	struct report r;
	char name[8];

	(void)state;
	build(&b, 1);
	for (unsigned i = 0; i < 400; i++) {
		snprintf(name, sizeof name, "%u", i);
		dump_builder_memory(&b, 1 + i % 2, 1 + i % 20, UINT64_MAX, name);
	}
	dump_builder_look(&b, DUMP_MEMORY_START, UINT64_MAX, UINT64_MAX & ~DUMP_LOOK_FAILED, "");
	dump_builder_look(&b, DUMP_MEMORY_END, 0, DUMP_LOOK_MALLOC, "");
	make(&r, &b, (struct report_options){ 0 });
	assert_false(r.resident.known);
	report_done(&r);
	dump_builder_done(&b);
}

/* Another malloc than glibc's, told apart by both looks, by one, or in one of two processes. */
static void test_another_allocator(void **state)
{
	static const struct row rows[] = { { DUMP_MEMORY_LIVE, 1, 1, NULL },
		                           { DUMP_MEMORY_OTHER_LIVE, 20, 532, "jemalloc" },
		                           { DUMP_MEMORY_OTHER_FREED, 10, 70, "jemalloc" },
		                           { DUMP_MEMORY_ANONYMOUS, 5, 9, NULL } };
	static const uint64_t both = DUMP_LOOK_MALLOC | DUMP_LOOK_OTHER;
	struct dump_builder b;
	struct report r;

	(void)state;
	build(&b, 512);
	LOOKS(&b, rows, 36, 612, both, "jemalloc");
	assert_line(&b, "  RSS           +576 MiB = 512 MiB live in jemalloc (stacks below) + 60.0 MiB freed, kept by "
	                "jemalloc + 4.00 MiB other");
	make(&r, &b, (struct report_options){ 0 });
	assert_says(text_of(&r), "  9.00 MiB  anonymous memory\n");
	assert_says(json_of(&r), "\"allocator_known\": true,");
	assert_says(json_of(&r), "\"kind\":\"other-freed\"");
	assert_true(resident_of_allocators(&r.resident) == 516 * (double)MIB);
	report_done(&r);
	dump_builder_done(&b);
	build(&b, 100);
	LOOKS(&b, rows, 36, 612, both, "jemalloc");
	char *line = line_of(&b);
	assert_non_null(strstr(line, "512 MiB live in jemalloc (stacks below: 100 MiB of it; "));
	assert_non_null(strstr(line, " not seen, or not in the session)"));
	free(line);
	dump_builder_done(&b);
	/* It was not found at first, among anonymous memory that is little, or is not. */
	for (uint64_t first = 0; first < 2; first++) {
		build(&b, 50);
		dump_builder_memory(&b, DUMP_MEMORY_START, DUMP_MEMORY_ANONYMOUS, first * MIB, "");
		dump_builder_look(&b, DUMP_MEMORY_START, first * MIB, 0, "jemalloc");
		dump_builder_memory(&b, DUMP_MEMORY_END, DUMP_MEMORY_OTHER_LIVE, 51 * MIB, "jemalloc");
		dump_builder_look(&b, DUMP_MEMORY_END, 51 * MIB, DUMP_LOOK_OTHER, "jemalloc");
		make(&r, &b, (struct report_options){ 0 });
		assert_true(r.resident.allocator_known == !first);
		assert_int_equal(r.resident.terms[0].kind, first ? DUMP_MEMORY_ANONYMOUS : DUMP_MEMORY_OTHER_LIVE);
		report_done(&r);
		dump_builder_done(&b);
	}
	build(&b, 512);
	LOOKS(&b, rows, 36, 612, DUMP_LOOK_MALLOC, "jemalloc");
	line = line_of(&b);
	assert_non_null(strstr(line, "= 576 MiB anonymous memory, of jemalloc and others (stacks below: 512 MiB of it; "
	                             "64.0 MiB freed and kept, or not seen)"));
	free(line);
	dump_builder_done(&b);
}

/* Two processes with one allocator, and with two. */
static void test_sums_of_allocators(void **state)
{
	static const struct row rows[][2] = {
		{ { DUMP_MEMORY_OTHER_LIVE, 0, 50, "jemalloc" }, { DUMP_MEMORY_OTHER_FREED, 0, 9, "jemalloc" } },
		{ { DUMP_MEMORY_OTHER_LIVE, 0, 50, "musl" }, { DUMP_MEMORY_OTHER_FREED, 0, 1, "musl" } }
	};
	static const char *const names[] = { "jemalloc", "musl", "" }, *const sums[] = { "several allocators",
		                                                                         "jemalloc" };
	struct memory_growth growth[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct dump_builder b;
		build(&b, 50);
		if (names[i][0])
			LOOKS(&b, rows[i], 0, 60, DUMP_LOOK_OTHER, names[i]);
		else
			add_looks(&b, NULL, 0, 0, 60, DUMP_LOOK_MALLOC, "");
		struct dump *dump = open_built(&b);
		assert_int_equal(memory_growth_read(&growth[i], dump), 0);
		dump_close(dump);
		dump_builder_done(&b);
	}
	for (int i = 0; i < 2; i++) {
		struct memory_growth sum = growth[0];
		memory_growth_add(&sum, &growth[i + 1]);
		assert_true(sum.allocator_known);
		assert_string_equal(sum.allocator, sums[i]);
		assert_true(sum.parts[DUMP_MEMORY_OTHER_LIVE].end == (i ? 50 : 100) * (double)MIB);
	}
	growth[1].allocator_known = false;
	memory_growth_add(&growth[0], &growth[1]);
	assert_false(growth[0].allocator_known);
	assert_true(growth[0].parts[DUMP_MEMORY_ANONYMOUS].end == 110 * (double)MIB);
}

/* Of several processes. */
static void test_sums_of_processes(void **state)
{
	static const struct row one[] = { { DUMP_MEMORY_LIVE, 1, 51, NULL },
		                          { DUMP_MEMORY_SHARED, 0, 9, "/dev/shm/x" } };
	static const struct row two[] = { { DUMP_MEMORY_MALLOC, 2, 52, NULL } };
	struct dump_builder b[2];
	struct report r;
	struct err e;

	(void)state;
	for (int i = 0; i < 2; i++)
		build(&b[i], 50);
	LOOKS(&b[0], one, 1, 60, DUMP_LOOK_MALLOC, "");
	LOOKS(&b[1], two, 2, 52, 0, "");
	assert_int_equal(report_init(&r, &(struct report_options){ .confidence = 0.95 }, &e), 0);
	for (int i = 0; i < 2; i++) {
		struct dump *dump = open_built(&b[i]);
		assert_int_equal(report_add(&r, dump, "x.dump", &e), 0);
		dump_close(dump);
	}
	assert_int_equal(report_finish(&r, &e), 0);
	assert_true(r.resident.known && !r.resident.malloc_known);
	assert_true(r.resident.growth == 109 * (double)MIB && r.resident.rest == 0);
	assert_int_equal(r.resident.count, 2);
	assert_true(r.resident.terms[0].kind == DUMP_MEMORY_MALLOC && r.resident.terms[0].growth == 100 * (double)MIB);
	assert_true(r.resident.terms[0].live);
	assert_string_equal(r.resident.terms[1].name, "/dev/shm/x");
	report_done(&r);
	for (int i = 0; i < 2; i++)
		dump_builder_done(&b[i]);
}

/* Each block is in one class, whatever its flags say. */
static void test_blocks_by_residency(void **state)
{
	static const struct {
		uint16_t flags;
		const char *name;
	} blocks[] = { { 0, "not looked at" },
		       { DUMP_LIVE_RESIDENCY(100, 0), "present" },
		       { DUMP_LIVE_RESIDENCY(99, 1), "present" },
		       { DUMP_LIVE_RESIDENCY(40, 0), "partly present" },
		       { DUMP_LIVE_RESIDENCY(10, 90), "swapped out" },
		       { DUMP_LIVE_RESIDENCY(0, 0), "not resident" },
		       { DUMP_LIVE_RESIDENCY(127, 127), "not looked at" } };
	struct dump_builder b;
	struct report r;

	(void)state;
	for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
		build(&b, 1);
		live_record(&b, 0)->flags = blocks[i].flags;
		make(&r, &b, (struct report_options){ .by = BY_RESIDENCY });
		assert_int_equal(r.groups.count, 1);
		assert_string_equal(residency_name((enum residency)r.groups.list[0].low), blocks[i].name);
		assert_true(r.groups.list[0].inclusive[FIGURE_LIVE_BYTES].value == (double)MIB);
		assert_says(text_of(&r), "what of a block is there at the end\n");
		assert_says(text_of(&r), blocks[i].name);
		char json[64];
		snprintf(json, sizeof json, "\"residency\": \"%s\"", blocks[i].name);
		assert_says(json_of(&r), json);
		report_done(&r);
		dump_builder_done(&b);
	}
}

/* Moments go forward; a look tells kinds apart, others do not. */
static void test_what_was_resident_meanwhile(void **state)
{
	static const struct {
		double at;
		bool is_look, kept;
	} moments[] = {
		{ 1, true, true }, { 2, false, true }, { 1.5, true, false }, { 2, true, false }, { 4, true, true }
	};
	struct dump_builder b;
	struct report r;
	size_t kept = 0;

	(void)state;
	build(&b, 1);
	for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
		struct dump_usage *usage = dump_builder_usage(&b, START + (uint64_t)(moments[i].at * (double)SECOND),
		                                              moments[i].is_look ? DUMP_USAGE_LOOK : 0, i * MIB);
		usage->parts[DUMP_MEMORY_LIVE] = UINT64_MAX;
	}
	make(&r, &b, (struct report_options){ .timeline = 7 });
	for (size_t i = 0; i < sizeof moments / sizeof *moments; i++)
		if (moments[i].kept) {
			const struct usage_point *point = &r.usage.list[kept++];
			assert_true(fabs(point->seconds - moments[i].at) < 1e-3 &&
			            point->is_look == moments[i].is_look);
			assert_true(point->rss == (double)(i * MIB) && point->parts[DUMP_MEMORY_LIVE] > 1e19);
		}
	assert_int_equal(r.usage.count, kept);
	assert_says(json_of(&r), "\"malloc-live\":");
	/* Of two that follow each other the look is shown. */
	assert_true(usage_shows(&r.usage, 0, 2) && !usage_shows(&r.usage, 1, 2) && usage_shows(&r.usage, 2, 2));
	for (size_t i = 0; i < kept; i++)
		assert_true(usage_shows(&r.usage, i, kept));
	report_done(&r);
	dump_builder_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_sum_closes),
		cmocka_unit_test(test_what_is_freed_and_what_is_left),
		cmocka_unit_test(test_what_is_live_is_judged),
		cmocka_unit_test(test_mappings_are_looked_for_where_they_may_be),
		cmocka_unit_test(test_what_one_look_could_not_tell),
		cmocka_unit_test(test_what_is_not_known_is_summed_up),
		cmocka_unit_test(test_without_both_looks_the_kernel_speaks),
		cmocka_unit_test(test_hostile_rows),
		cmocka_unit_test(test_another_allocator),
		cmocka_unit_test(test_sums_of_allocators),
		cmocka_unit_test(test_sums_of_processes),
		cmocka_unit_test(test_blocks_by_residency),
		cmocka_unit_test(test_what_was_resident_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
