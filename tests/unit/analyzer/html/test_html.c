/* SPDX-License-Identifier: MIT */
/* The HTML report: what of a tree is left out, which growth counts, and that names stay data. */
#include "views.h"

#include "heap_simulation.h"
#include "html/html_data.h"
#include "html/html_growth.h"
#include "html/html_tree.h"
#include "html/report_html.h"

#define STACKS 400u
#define PAIRS 30

/* Stacks of three frames: ten outermost functions, each with some that few others have. */
static uint32_t stack_number(struct dump_builder *b, uint32_t i)
{
	const uint64_t frames[] = { DUMP_FRAME(1, 0x410000 + 16 * i), DUMP_FRAME(1, 0x408000 + 16 * (i / 4)),
		                    DUMP_FRAME(1, 0x404000 + 16 * (i % 10)) };

	return dump_builder_stack(b, frames, 3, 0);
}

static uint32_t poisson(struct random_source *random, double mean)
{
	uint32_t n = 0;

	for (double at = -log(random_unit(random)); at < mean; at -= log(random_unit(random)))
		n++;
	return n;
}

/* random: NULL: so many samples of each, else on average. */
static void make_heap(struct dump_builder *b, uint32_t samples, struct random_source *random)
{
	dump_builder_init(b, RATE, 4096, STACKS, 1);
	dump_builder_module(b, 1, 0, 0x400000, 0x500000, "/usr/bin/</script>", NULL, 0, 0);
	for (uint32_t i = 0; i < STACKS; i++) {
		uint32_t stack = stack_number(b, i);
		uint32_t n = random ? poisson(random, samples) : samples;
		for (uint32_t k = 0; k < n + (i == 7 ? 20 : 0); k++)
			sample(b, stack, 1000 + 10 * i, RATE, 1, 0);
	}
}

static void make_many(struct dump_builder *b, uint32_t samples)
{
	make_heap(b, samples, NULL);
}

/* The bytes that are written of a tree. */
static size_t written(const struct html_tree *t)
{
	struct json j = { 0 };
	uint32_t *order = calloc(t->frames.count, sizeof *order);
	char *text;
	size_t size;

	j.out = open_memstream(&text, &size);
	json_object(&j, NULL);
	assert_int_equal(html_data_frames(t, &j, order), 0);
	json_object_end(&j);
	html_data_nodes(t, order, j.out);
	fclose(j.out);
	free(text);
	free(order);
	return size;
}

/* Live bytes and stacks of all nodes that are kept. */
static void add_up(const struct html_tree *t, double *live, size_t *stacks, double *least, double *most_left_out)
{
	struct html_sums sums;

	*live = *most_left_out = 0;
	*least = 1;
	*stacks = 0;
	for (uint32_t i = 0; i < t->count; i++) {
		const struct html_node *n = &t->nodes[i];
		if (!n->kept) {
			assert_true(!n->rows && !n->small);
			*most_left_out = fmax(*most_left_out, n->weight);
			continue;
		}
		*least = fmin(*least, n->weight);
		assert_true(i == HTML_ROOT || t->nodes[n->parent].kept);
		for (int k = 0; k < 2; k++) {
			html_tree_sum(t, k ? n->small : n->rows, &sums);
			*live += sums.row.sum[FIGURE_LIVE_BYTES].value;
			*stacks += sums.stacks;
		}
	}
}

static void test_small_nodes_are_summed_up(void **state)
{
	const size_t budgets[] = { 1u << 20, 20000, 5000, 1500 };
	struct dump_builder b;
	struct report r;
	uint32_t kept = UINT32_MAX;

	(void)state;
	make_many(&b, 2);
	make(&r, &b, (struct report_options){ 0 });
	for (size_t i = 0; i < sizeof budgets / sizeof budgets[0]; i++) {
		struct html_tree t;
		double live, least, most;
		size_t stacks;
		assert_int_equal(html_tree_init(&t, &r), 0);
		assert_int_equal(html_tree_fit(&t, budgets[i]), 0);
		add_up(&t, &live, &stacks, &least, &most);
		assert_true(fabs(live - r.total.sum[FIGURE_LIVE_BYTES].value) < 1e-6 * live);
		assert_int_equal(stacks, STACKS);
		assert_true(most <= least);
		assert_true(i ? t.kept < kept && t.small_stacks : t.kept == t.count && !t.small_stacks);
		assert_true(written(&t) <= budgets[i]);
		kept = t.kept;
		html_tree_done(&t);
	}
	report_done(&r);
	dump_builder_done(&b);
}

static void test_growth_of_chance_is_none(void **state)
{
	struct dump_builder old, new, more;
	double levels[FIGURE_COUNT];
	struct html_tree t;
	struct report r;
	uint32_t tested;

	(void)state;
	make_many(&old, 2);
	make_many(&new, 2);
	make_many(&more, 4);
	compare(&r, &old, &new);
	assert_int_equal(html_tree_init(&t, &r), 0);
	assert_int_equal(html_growth_levels(&t, levels, &tested), 0);
	assert_int_equal(tested, t.count);
	for (int f = 0; f < FIGURE_COUNT; f++)
		assert_true(levels[f] < 0);
	html_tree_done(&t);
	report_done(&r);
	/* Twice as much: the root and the outermost functions have grown for certain. And the other way round. */
	for (int turn = 0; turn < 2; turn++) {
		compare(&r, turn ? &more : &old, turn ? &old : &more);
		assert_int_equal(html_tree_init(&t, &r), 0);
		assert_int_equal(html_growth_levels(&t, levels, &tested), 0);
		assert_true(levels[FIGURE_LIVE_BYTES] > 0 && levels[FIGURE_LIVE_BYTES] <= 0.05);
		html_tree_done(&t);
		report_done(&r);
	}
	dump_builder_done(&old);
	dump_builder_done(&new);
	dump_builder_done(&more);
}

/* Pairs of sessions of one heap, with their own samples: a colour anywhere is chance, which is to be one in twenty at
 * most. Of 30 pairs, 7 or more have one with less than 0.0007 (binomial). */
static void test_steady_sessions_are_grey(void **state)
{
	struct random_source random = { 17 };
	int coloured[FIGURE_COUNT] = { 0 };

	(void)state;
	for (int i = 0; i < PAIRS; i++) {
		struct dump_builder old, new;
		double levels[FIGURE_COUNT];
		struct html_tree t;
		struct report r;
		uint32_t tested;
		make_heap(&old, 3, &random);
		make_heap(&new, 3, &random);
		compare(&r, &old, &new);
		assert_int_equal(html_tree_init(&t, &r), 0);
		assert_int_equal(html_growth_levels(&t, levels, &tested), 0);
		for (int f = 0; f < FIGURE_COUNT; f++)
			coloured[f] += levels[f] > 0;
		html_tree_done(&t);
		report_done(&r);
		dump_builder_done(&old);
		dump_builder_done(&new);
	}
	for (int f = 0; f < FIGURE_COUNT; f++) {
		printf("%s: %d of %d pairs have a colour\n", report_figure_name(f), coloured[f], PAIRS);
		assert_true(coloured[f] < 7);
	}
}

static size_t count_of(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

static void test_names_are_data(void **state)
{
	struct dump_builder b;
	struct report r;
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	make_many(&b, 1);
	make(&r, &b, (struct report_options){ 0 });
	assert_int_equal(report_html(&r, "<img src=x>\033[31m\xff", out), 0);
	fclose(out);
	assert_int_equal(count_of(text, "</script>"), 5);
	assert_int_equal(count_of(text, "<img"), 0);
	assert_int_equal(count_of(text, "\033"), 0);
	assert_true(count_of(text, "\\u003c/script>"));
	assert_true(count_of(text, "default-src 'none'"));
	assert_true(size < HTML_BYTES);
	free(text);
	report_done(&r);
	dump_builder_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_nodes_are_summed_up),
		cmocka_unit_test(test_growth_of_chance_is_none),
		cmocka_unit_test(test_steady_sessions_are_grey),
		cmocka_unit_test(test_names_are_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
