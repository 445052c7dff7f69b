/* SPDX-License-Identifier: MIT */
/* Filters and sums by what samples are: parts add up to the whole, and a part is what a filter for it shows. */
#include "views.h"

#include <link.h>

#include "exchange/profile_threads.h"

enum { STACKS = 5, THREADS = 3, SAMPLES = 600 };

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* Stacks through three modules, three threads, sizes over five decades, lifetimes over the whole session. */
static void build(struct dump_builder *b, uint32_t rate)
{
	static const uint64_t frames[STACKS][3] = {
		{ DUMP_FRAME(1, 0x400100), DUMP_FRAME(1, 0x400200), DUMP_FRAME(1, 0x400300) },
		{ DUMP_FRAME(2, 0x500100), DUMP_FRAME(1, 0x400200), DUMP_FRAME(1, 0x400300) },
		{ DUMP_FRAME(2, 0x500200), DUMP_FRAME(1, 0x400200), DUMP_FRAME(1, 0x400300) },
		{ DUMP_FRAME(3, 0x600100), DUMP_FRAME(2, 0x500100), DUMP_FRAME(1, 0x400300) },
		{ DUMP_FRAME(3, 0x600100), DUMP_FRAME(1, 0x400200), DUMP_FRAME(1, 0x400300) },
	};
	uint32_t stacks[STACKS + 1];
	uint64_t random = 42;

	dump_builder_init(b, rate, 1024, 16, 8);
	dump_builder_module(b, 1, 0, 0x400000, 0x500000, "/usr/bin/main", NULL, 0, 0);
	dump_builder_module(b, 2, 0, 0x500000, 0x600000, "/usr/lib/libparse.so", NULL, 0, 0);
	dump_builder_module(b, 3, 0, 0x600000, 0x700000, "/usr/lib/libstore.so", NULL, 0, 0);
	for (int i = 0; i < STACKS; i++)
		stacks[i] = dump_builder_stack(b, frames[i], 3, 0);
	stacks[STACKS] = dump_builder_stack(b, NULL, 0, 0);
	dump_builder_header(b)->unknown_stack = stacks[STACKS];
	dump_builder_thread(b, 11, "reader");
	dump_builder_thread(b, 12, "writer");
	for (int i = 0; i < SAMPLES; i++) {
		uint64_t r = next_random(&random);
		uint64_t size = 1ull << (r >> 8) % 17 | (r >> 16 & 0xff);
		double born = (double)(r >> 32 & 0xff) / 10;
		double freed = r & 1 ? 0 : fmin(29.9, born + exp2((double)(r >> 40 & 15) - 10));
		sample(b, stacks[(r >> 48) % (STACKS + 1)], size, rate, born, freed);
		uint32_t tid = (uint32_t)(11 + (r >> 56) % THREADS);
		if (freed == 0) {
			live_record(b, b->live_used - 1)->tid = tid;
			continue;
		}
		uint64_t last = 0;
		for (unsigned k = 0; k < DUMP_COUNTER_SHARDS; k++)
			last += dump_builder_header(b)->counters[k][DUMP_COUNTER_samples_freed];
		history_record(b, last - 1)->tid = tid;
	}
}

static void assert_near(double a, double b)
{
	if (!(fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b))))
		fail_msg("%.17g is not %.17g", a, b);
}

static void assert_equal_sums(const struct estimate_sum *a, const struct estimate_sum *b)
{
	assert_near(a->value, b->value);
	assert_near(a->variance, b->variance);
	assert_int_equal(a->samples, b->samples);
}

/* A pattern for each way to choose a stack, and views whose sums come from different places. */
static const char *const patterns[] = { "libparse", "libstore", "main", "lib(parse|store)[.]so$", "^/usr/lib", "none" };
static const struct report_options views[] = {
	{ .sort = FIGURE_LIVE_BYTES },
	{ .at_ns = 12000000000u },
	{ .since_ns = 9000000000u },
	{ .since_ns = 5000000000u, .at_ns = 20000000000u },
	{ .leaks = true, .age_ns = 1000000000u },
	{ .filter = { .size_low = 64, .size_high = 5000 } },
	{ .filter = { .thread = "reader|writer" } },
	{ .at_ns = 12000000000u, .filter = { .older_ns = 3000000000u } },
};

static void test_focus_and_ignore_are_the_total(void **state)
{
	static const uint32_t rates[] = { 1, RATE };

	(void)state;
	for (size_t i = 0; i < 2 * sizeof views / sizeof views[0]; i++) {
		struct dump_builder b;
		struct report all;
		struct report_options options = views[i / 2];
		build(&b, rates[i % 2]);
		make(&all, &b, options);
		for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++) {
			struct report in, out;
			options = views[i / 2];
			options.filter.focus = patterns[p];
			make(&in, &b, options);
			options.filter.focus = NULL;
			options.filter.ignore = patterns[p];
			make(&out, &b, options);
			assert_int_equal(in.rows.count + out.rows.count, all.rows.count);
			assert_true(p == 5 ? !in.rows.count : in.rows.count && out.rows.count);
			for (int f = 0; f < FIGURE_COUNT; f++) {
				struct estimate_sum sum = in.total.sum[f];
				estimate_merge(&sum, &out.total.sum[f]);
				assert_equal_sums(&sum, &all.total.sum[f]);
				assert_equal_sums(&in.unfiltered.sum[f], &all.unfiltered.sum[f]);
				assert_equal_sums(&out.unfiltered.sum[f], &all.unfiltered.sum[f]);
			}
			report_done(&in);
			report_done(&out);
		}
		report_done(&all);
		dump_builder_done(&b);
	}
}

/* Samples without a stack may be of what is left out or kept: the total allows for them, and the head says so. */
static void test_what_has_no_stack_is_not_assigned(void **state)
{
	struct report all, in, out, sized;
	struct dump_builder b;

	(void)state;
	build(&b, RATE);
	dump_builder_header(&b)->counters[0][DUMP_COUNTER_lost_stack_full] = 40;
	make(&all, &b, (struct report_options){ 0 });
	make(&in, &b, (struct report_options){ .filter = { .focus = "libparse" } });
	make(&out, &b, (struct report_options){ .filter = { .ignore = "libparse" } });
	make(&sized, &b, (struct report_options){ .filter = { .size_low = 1 } });
	const struct report_row *unknown = NULL;
	for (size_t i = 0; !unknown; i++)
		unknown = all.rows.list[i].unknown ? &all.rows.list[i] : NULL;
	for (int f = 0; f < FIGURE_COUNT; f++) {
		struct estimate with = report_estimate(&in, &in.total, f);
		struct estimate without = estimate_interval(&in.total.sum[f], in.options.confidence);
		assert_near(with.high, without.high + report_lost_weight(&in, f, 40));
		assert_equal_sums(&in.unassigned[f], &unknown->sum[f]);
		assert_equal_sums(&out.unassigned[f], &unknown->sum[f]);
		assert_int_equal(sized.unassigned[f].samples, 0);
		assert_near(report_estimate(&out, &out.total, f).high,
		            estimate_interval(&out.total.sum[f], out.options.confidence).high);
		assert_near(in.total.sum[f].value + out.total.sum[f].value, all.total.sum[f].value);
	}
	assert_says(text_of(&in), "samples without a stack, which are left out and may be of what is kept");
	assert_says(text_of(&out), "samples without a stack, which count as kept and may be of what is left out");
	assert_says(json_of(&in), "\"samples_not_assigned\"");
	for (size_t i = 0; i < 4; i++)
		report_done((struct report *[]){ &all, &in, &out, &sized }[i]);
	dump_builder_done(&b);
}

/* Parts add up to the row, those of a thread to what a filter for it shows; what has no record is of no thread. */
static void test_threads_of_stacks(void **state)
{
	static const char *const names[] = { "reader", "writer", "tid 13" };
	struct dump_builder b;
	struct report r;

	(void)state;
	build(&b, RATE);
	live_record(&b, 0)->tid = live_record(&b, 1)->tid = 0;
	make(&r, &b, (struct report_options){ .stack_threads = true });
	for (size_t n = 0; n < 3; n++) {
		struct report one;
		int64_t sum[FIGURE_COUNT] = { 0 }, samples = 0;
		make(&one, &b, (struct report_options){ .filter = { .thread = n < 2 ? names[n] : "13" } });
		for (size_t i = 0; i < r.rows.count; i++) {
			struct profile_part whole = { .thread = "" }, all = { .thread = "" };
			struct profile_split split;
			for (int f = 0; f < FIGURE_COUNT; f++) {
				whole.values[f] = (int64_t)r.rows.list[i].sum[f].value;
				whole.samples[f] = r.rows.list[i].sum[f].samples;
			}
			assert_int_equal(profile_split(&r, &r.rows.list[i], &whole, &split), 0);
			for (size_t k = 0; k < split.count; k++) {
				assert_true(k + 1 == split.count || split.parts[k].thread[0]);
				for (int f = 0; f < FIGURE_COUNT; f++) {
					bool mine = !strcmp(split.parts[k].thread, names[n]);
					all.values[f] += split.parts[k].values[f];
					all.samples[f] += split.parts[k].samples[f];
					sum[f] += mine ? split.parts[k].values[f] : 0;
					samples += mine && f == FIGURE_LIVE_BYTES ? (int64_t)split.parts[k].samples[f]
					                                          : 0;
				}
			}
			assert_memory_equal(all.values, whole.values, sizeof all.values);
			assert_memory_equal(all.samples, whole.samples, sizeof all.samples);
			free(split.parts);
		}
		assert_int_equal(samples, one.total.sum[FIGURE_LIVE_BYTES].samples);
		for (int f = 0; f < FIGURE_COUNT; f++)
			assert_true(fabs((double)sum[f] - one.total.sum[f].value) < 4 * (double)r.rows.count);
		report_done(&one);
	}
	report_done(&r);
	dump_builder_done(&b);
}

/* What a group has of its own; of threads, sizes and lifetimes all of it. */
static const struct estimate_sum *own_of(const struct report *r, const struct group *g)
{
	return groups_of_samples(r->options.by) ? g->inclusive : g->exclusive;
}

static void assert_groups_are_total(const struct report *r)
{
	for (int f = 0; f < FIGURE_COUNT; f++) {
		struct estimate_sum sum = { 0 };
		if (r->options.by == BY_THREAD && !report_is_live((enum report_figure)f))
			continue;
		for (size_t i = 0; i < r->groups.count; i++)
			estimate_merge(&sum, &own_of(r, &r->groups.list[i])[f]);
		assert_equal_sums(&sum, &r->total.sum[f]);
	}
}

static void test_groups_are_the_total(void **state)
{
	static const struct report_options some[] = {
		{ .sort = FIGURE_LIVE_BYTES },
		{ .at_ns = 12000000000u },
		{ .filter = { .focus = "libstore" } },
		{ .filter = { .ignore = "libstore", .size_high = 4096 } },
		{ .filter = { .thread = "13", .show_from = "libparse", .hide = "main" } },
		{ .at_ns = 12000000000u, .filter = { .older_ns = 3000000000u } },
	};

	(void)state;
	for (enum group_by by = BY_FUNCTION; by < BY_COUNT; by++) {
		for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
			struct dump_builder b;
			struct report r;
			struct report_options options = some[i];
			options.by = by;
			options.sort = by == BY_THREAD ? FIGURE_LIVE_BYTES : FIGURE_ALLOCATED_BYTES;
			build(&b, RATE);
			make(&r, &b, options);
			assert_true(r.groups.count >= 1 && r.total.sum[FIGURE_LIVE_COUNT].samples);
			assert_groups_are_total(&r);
			free(text_of(&r));
			free(json_of(&r));
			report_done(&r);
			dump_builder_done(&b);
		}
	}
}

/* What the history has dropped is of no size and no lifetime, but it was allocated. */
static void test_lost_history_is_a_group_of_its_own(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	build(&b, RATE);
	struct dump_region *region = dump_builder_region(&b, DUMP_REGION_HISTORY);
	struct dump_history_block *first = dump_builder_at(&b, region->offset);
	uint64_t gone = first->used;
	first->used = 0;
	dump_builder_header(&b)->counters[0][DUMP_COUNTER_lost_history] = gone;
	for (enum group_by by = BY_SIZE; by <= BY_LIFETIME; by++) {
		make(&r, &b, (struct report_options){ .by = by, .sort = FIGURE_ALLOCATED_BYTES });
		assert_groups_are_total(&r);
		const struct group *last = &r.groups.list[r.groups.count - 1];
		assert_true(last->others && last->inclusive[FIGURE_ALLOCATED_COUNT].samples == gone);
		assert_says(text_of(&r), "(not known any more)");
		report_done(&r);
	}
	/* A filter that chooses records lacks them, which is said. */
	make(&r, &b, (struct report_options){ .filter = { .size_low = 1 } });
	assert_true(r.past_unknown && !report_complete(&r));
	assert_true(r.unfiltered.sum[FIGURE_ALLOCATED_COUNT].samples ==
	            r.total.sum[FIGURE_ALLOCATED_COUNT].samples + gone);
	assert_says(text_of(&r), "is missing from what was allocated");
	report_done(&r);
	dump_builder_done(&b);
}

static void test_a_filter_shows_its_group(void **state)
{
	struct dump_builder b;
	struct report all, part;
	double low, high;

	(void)state;
	build(&b, RATE);
	make(&all, &b, (struct report_options){ .by = BY_SIZE });
	assert_true(all.groups.count > 10);
	for (size_t i = 0; i < all.groups.count; i++) {
		const struct group *g = &all.groups.list[i];
		make(&part, &b,
		     (struct report_options){
			     .filter = { .size_low = (uint64_t)g->low, .size_high = (uint64_t)g->high } });
		for (int f = 0; f < FIGURE_COUNT; f++)
			assert_equal_sums(&part.total.sum[f], &g->inclusive[f]);
		report_done(&part);
	}
	report_done(&all);
	make(&all, &b, (struct report_options){ .by = BY_THREAD });
	for (size_t i = 0; i < all.groups.count; i++) {
		const struct group *g = &all.groups.list[i];
		char number[16];
		snprintf(number, sizeof number, "%u", g->tid);
		make(&part, &b, (struct report_options){ .filter = { .thread = g->name[0] ? g->name : number } });
		for (int f = 0; f <= FIGURE_LIVE_COUNT; f++)
			assert_equal_sums(&part.total.sum[f], &g->inclusive[f]);
		report_done(&part);
	}
	report_done(&all);
	/* Ages of ten seconds and more are what is older than that. */
	make(&all, &b, (struct report_options){ .by = BY_LIFETIME });
	make(&part, &b, (struct report_options){ .filter = { .older_ns = 10000000000u } });
	struct estimate_sum old[FIGURE_LIVE_COUNT + 1] = { 0 };
	for (size_t i = 0; i < all.groups.count; i++)
		for (int f = 0; f <= FIGURE_LIVE_COUNT; f++)
			if (all.groups.list[i].low >= 10)
				estimate_merge(&old[f], &all.groups.list[i].inclusive[f]);
	for (int f = 0; f <= FIGURE_LIVE_COUNT; f++)
		assert_equal_sums(&part.total.sum[f], &old[f]);
	assert_true(old[0].samples > 50);
	report_done(&all);
	report_done(&part);
	dump_builder_done(&b);
	class_limits(CLASS_SIZE, class_of(CLASS_SIZE, UINT64_MAX), &low, &high);
	assert_true(low == 0x1p63 && isinf(high) && class_of(CLASS_SIZE, 0) == 0 && class_of(CLASS_SIZE, 1) == 1);
	class_limits(CLASS_LIFETIME, class_of(CLASS_LIFETIME, UINT64_MAX), &low, &high);
	assert_true(low == 86400 && isinf(high) && class_of(CLASS_LIFETIME, 999) == 0);
	class_limits(CLASS_LIFETIME, class_of(CLASS_LIFETIME, 60000000000u), &low, &high);
	assert_true(low == 60 && high == 600);
}

/* Intervals are those of what is kept; what the figures are worth, and the memory, those of the session. */
static void test_the_rest_of_the_report(void **state)
{
	struct dump_builder b;
	struct report all, part;

	(void)state;
	build(&b, RATE);
	dump_builder_header(&b)->private_start_bytes = 1 << 20;
	dump_builder_header(&b)->private_latest_bytes = 40 << 20;
	make(&all, &b, (struct report_options){ 0 });
	make(&part, &b, (struct report_options){ .filter = { .focus = "libstore", .ignore = "libparse" } });
	assert_int_equal(part.rows.count, 1);
	struct estimate x = report_estimate(&part, &part.total, FIGURE_LIVE_BYTES);
	struct estimate y = report_estimate(&part, &part.rows.list[0], FIGURE_LIVE_BYTES);
	struct estimate z = report_estimate(&all, row_with(&all, 0x600100), FIGURE_LIVE_BYTES);
	assert_true(x.value == y.value && x.low >= y.low && y.low > x.low / 2 && x.high == y.high); /* estimate.h */
	assert_true(z.value > 0 && report_share(&part, &part.rows.list[0], FIGURE_LIVE_BYTES) == 1);
	assert_true(part.memory.known);
	assert_near(part.memory.live.value, all.memory.live.value);
	assert_int_equal(part.trust.live.value, all.trust.live.value);
	char said[200], kept[16], whole[16];
	uint64_t samples = part.total.sum[FIGURE_LIVE_BYTES].samples;
	size_format(part.total.sum[FIGURE_LIVE_BYTES].value, kept);
	size_format(all.total.sum[FIGURE_LIVE_BYTES].value, whole);
	snprintf(said, sizeof said, "kept %s of %s live (", kept, whole);
	assert_says(text_of(&part), said);
	snprintf(said, sizeof said, ", %d of %d samples\n", (int)samples,
	         (int)all.total.sum[FIGURE_LIVE_BYTES].samples);
	assert_says(text_of(&part), said);
	assert_says(text_of(&part), "--focus=libstore --ignore=libparse");
	snprintf(said, sizeof said, "\"samples_kept\": %d", (int)samples);
	assert_says(json_of(&part), said);
	assert_says(json_of(&all), "\"filter\": null");
	report_done(&part);
	report_done(&all);
	dump_builder_done(&b);
}

static void test_frames_are_taken_out(void **state)
{
	struct dump_builder b;
	struct report all, part;

	(void)state;
	build(&b, RATE);
	make(&all, &b, (struct report_options){ 0 });
	make(&part, &b, (struct report_options){ .filter = { .hide = "libparse" } });
	/* The two that differ in libparse only are one now. */
	assert_int_equal(part.rows.count, all.rows.count - 1);
	for (int f = 0; f < FIGURE_COUNT; f++)
		assert_equal_sums(&part.total.sum[f], &all.total.sum[f]);
	for (size_t i = 0; i < part.rows.count; i++)
		for (uint32_t k = 0; k < part.rows.list[i].frame_count; k++)
			assert_int_not_equal(PLACE_IMAGE(part.rows.list[i].frames[k]), 2);
	report_done(&part);
	make(&part, &b, (struct report_options){ .filter = { .hide = "." } });
	assert_int_equal(part.rows.count, 2); /* nothing left, and not known */
	assert_says(text_of(&part), "(no frame is shown)");
	report_done(&part);
	make(&part, &b, (struct report_options){ .filter = { .show_from = "libparse" } });
	assert_int_equal(part.rows.count, 3);
	for (size_t i = 0; i < part.rows.count; i++) {
		const struct report_row *row = &part.rows.list[i];
		assert_int_equal(PLACE_IMAGE(row->frames[row->frame_count - 1]), 2);
	}
	report_done(&part);
	report_done(&all);
	dump_builder_done(&b);
}

static void test_nothing_is_left(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	build(&b, RATE);
	make(&r, &b, (struct report_options){ .filter = { .focus = "no such" } });
	struct estimate x = report_estimate(&r, &r.total, FIGURE_LIVE_BYTES);
	assert_true(x.value == 0 && x.low == 0 && x.high > 3 * RATE);
	assert_says(text_of(&r), "kept 0 B of ");
	report_done(&r);
	dump_builder_done(&b);
}

/* Functions, one of them inlined: the test looks for itself. */

static int find_bias(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(uint64_t *)arg = info->dlpi_addr;
	return 1; /* the first is the program */
}

static void test_functions_and_files_match(void **state)
{
	static const struct {
		struct filter_options filter;
		size_t rows;
	} cases[] = {
		{ { .focus = "^assert_near$" }, 1 },        { { .focus = "test_filters[.]c" }, 2 },
		{ { .ignore = "^assert_near$" }, 1 },       { { .focus = "^near$" }, 0 },
		{ { .hide = "assert_near|find_bias" }, 1 },
	};
	struct dump_builder b;
	char program[4096] = { 0 };
	uint64_t bias = 0;

	(void)state;
	assert_true(readlink("/proc/self/exe", program, sizeof program - 1) > 0);
	dl_iterate_phdr(find_bias, &bias);
	const uint64_t near[] = { DUMP_FRAME(1, (uint64_t)(uintptr_t)assert_near + 1) };
	const uint64_t other[] = { DUMP_FRAME(1, (uint64_t)(uintptr_t)find_bias + 1) };
	dump_builder_init(&b, 1, 64, 8, 1);
	uint64_t start = (uint64_t)(uintptr_t)assert_near & ~0xfffffull;
	dump_builder_module(&b, 1, bias, start, start + 0x200000, program, NULL, 0, 0);
	uint32_t s = dump_builder_stack(&b, near, 1, 0);
	uint32_t t = dump_builder_stack(&b, other, 1, 0);
	dump_builder_sample(&b, s, 1000, 1, 1);
	dump_builder_sample(&b, t, 10, 1, 1);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct report r;
		make(&r, &b, (struct report_options){ .symbols = true, .filter = cases[i].filter });
		assert_int_equal(r.rows.count, cases[i].rows);
		report_done(&r);
	}
	struct report r;
	make(&r, &b, (struct report_options){ .symbols = true, .by = BY_FUNCTION, .filter = { .focus = "near" } });
	assert_int_equal(r.groups.count, 1);
	assert_string_equal(r.groups.list[0].name, "assert_near");
	report_done(&r);
	make(&r, &b, (struct report_options){ .symbols = true, .by = BY_LINE });
	assert_int_equal(r.groups.count, 2);
	assert_non_null(strstr(r.groups.list[0].name, "/unit/analyzer/filter/test_filters.c:"));
	assert_says(text_of(&r), " filter/test_filters.c:");
	report_done(&r);
	make(&r, &b, (struct report_options){ .symbols = true, .by = BY_FILE });
	assert_int_equal(r.groups.count, 1);
	assert_true(r.groups.list[0].exclusive[FIGURE_LIVE_BYTES].value == 1010);
	report_done(&r);
	dump_builder_done(&b);
}

static bool matches(const char *text, const char *name)
{
	struct pattern p;
	struct err e;

	assert_int_equal(pattern_init(&p, text, &e), 0);
	bool found = pattern_matches(&p, name);
	pattern_done(&p);
	return found;
}

static void test_patterns(void **state)
{
	static const char *const wrong[] = { "", "(", "a)|(b", "[", "a{2", "\\", "(a)\\1", "*" };
	struct pattern p;
	struct err e;

	(void)state;
	assert_true(matches("b", "abc") && matches("^abc$", "abc") && !matches("^b", "abc") && matches("x|c$", "abc"));
	assert_true(matches("a[.]b", "a.b") && matches("\\(", "f(int)") && matches("b$", "a\nb") && !matches("a", ""));
	assert_true(matches("^$", "") && !matches("a", NULL) && matches("\xff", "a\xff") && matches("\\\\1", "\\1"));
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		if (pattern_init(&p, wrong[i], &e) == 0)
			fail_msg("'%s' is taken", wrong[i]);
		assert_true(e.code == EINVAL && e.text[0]);
	}
}

/* Names that would take hours and all memory, were each tried at all of its bytes and all be remembered. */
static void test_patterns_are_bounded(void **state)
{
	enum { LONG = 1 << 20, NAMES = 2000 };
	char *name = malloc(LONG + 1);
	uint64_t random = 7;
	struct pattern p;
	struct err e;
	size_t found = 0;

	(void)state;
	assert_non_null(name);
	memset(name, 'a', LONG);
	name[LONG] = 0;
	assert_int_equal(pattern_init(&p, "a.*a.*a.*b", &e), 0);
	for (int i = 0; i < NAMES; i++)
		found += pattern_matches(&p, name);
	assert_int_equal(found, 0);
	name[PATTERN_NAME_MAX] = 'b'; /* beyond what is looked at */
	assert_false(pattern_matches(&p, name));
	name[PATTERN_NAME_MAX - 1] = 'b';
	assert_true(pattern_matches(&p, name));
	pattern_done(&p);
	assert_int_equal(pattern_init(&p, "(a|b)*a(a|b){14}c", &e), 0);
	for (int i = 0; i < NAMES / 10; i++) {
		for (size_t k = 0; k < PATTERN_NAME_MAX; k++)
			name[k] = next_random(&random) & 1 ? 'a' : 'b';
		found += pattern_matches(&p, name);
		assert_true(p.looked_at <= (64u << 10) + PATTERN_NAME_MAX);
	}
	assert_int_equal(found, 0);
	pattern_done(&p);
	free(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_focus_and_ignore_are_the_total),
		cmocka_unit_test(test_what_has_no_stack_is_not_assigned),
		cmocka_unit_test(test_threads_of_stacks),
		cmocka_unit_test(test_groups_are_the_total),
		cmocka_unit_test(test_lost_history_is_a_group_of_its_own),
		cmocka_unit_test(test_a_filter_shows_its_group),
		cmocka_unit_test(test_the_rest_of_the_report),
		cmocka_unit_test(test_frames_are_taken_out),
		cmocka_unit_test(test_nothing_is_left),
		cmocka_unit_test(test_functions_and_files_match),
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_patterns_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
