/* SPDX-License-Identifier: MIT */
/* Python frames in reports: which frames a row has, what the views and outputs say, and that sums stay what they are.
 */
#include "views.h"

#include "forms/outputs.h"

#define PYTHON_MODULE "/usr/lib/python3/dist-packages/pandas/core/frame.py"

static void make_snake(struct report *r, struct report_options options)
{
	struct dump_builder b;

	dump_builder_snake(&b);
	make(r, &b, options);
	dump_builder_done(&b);
}

/* The functions of a row, "module:function:line", the name of the file where the function is not known. */
static char *stack_of(const struct report *r, const struct report_row *row)
{
	static char text[1024];
	size_t used = 0, n;

	text[0] = 0;
	for (uint32_t i = 0; i < row->frame_count; i++) {
		const struct location *l = report_locations(r, row->frames[i], &n);
		const struct image *image = &r->images.list[PLACE_IMAGE(row->frames[i])];
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%s:%d", i ? " < " : "",
		                         l->function   ? l->function
		                         : image->path ? image_name(image)
		                                       : "own code",
		                         l->line);
	}
	return text;
}

static const struct report_row *row_of(const struct report *r, const char *stack)
{
	return row_of_text(r, stack, stack_of);
}

#define FRAME "DataFrame.\x1b[1m\xc3\xa9:700"

static void test_interpreter_is_left_out(void **state)
{
	struct report r;

	(void)state;
	make_snake(&r, (struct report_options){ .symbols = false });
	const struct report_row *array =
		row_of(&r, "_multiarray_umath.so:0 < load_tiles:82 < Views.handle:31 < " FRAME);
	assert_int_equal(array->sum[FIGURE_ALLOCATED_COUNT].samples, 20);
	assert_int_equal(array->flags, 0);
	/* The walk of the native frames failed; those of Python are whole. */
	const struct report_row *unknown = row_of(&r, "load_tiles:80 < (unknown Python function):0");
	assert_int_equal(unknown->flags, 0);
	assert_int_equal(unknown->sum[FIGURE_LIVE_COUNT].samples, 3);
	assert_int_equal(row_of(&r, "load_tiles:82")->flags, DUMP_STACK_DEEP);
	assert_int_equal(row_of(&r, "libc.so.6:0")->sum[FIGURE_LIVE_COUNT].samples, 1);
	assert_int_equal(r.rows.count, 4);
	assert_int_equal(r.python.samples, 26);
	assert_int_equal(r.python.complete, 20);
	assert_int_equal(report_skipped(&r, DUMP_SKIP_code), 1);
	report_done(&r);
}

static void test_native_frames_are_shown(void **state)
{
	struct report r;

	(void)state;
	make_snake(&r, (struct report_options){ .symbols = false, .native = true });
	row_of(&r, "_multiarray_umath.so:0 < python3.11:0 < load_tiles:82 < Views.handle:31 < python3.11:0 < " FRAME
	           " < python3.11:0 < libc.so.6:0");
	assert_int_equal(row_of(&r, "python3.11:0 < load_tiles:80 < python3.11:0 < (unknown Python function):0")->flags,
	                 DUMP_STACK_TRUNCATED);
	assert_int_equal(r.rows.count, 4);
	report_done(&r);
}

/* Sums of rows and of exclusive groups are the totals, whatever is shown of the stacks. */
static void test_sums_are_the_same(void **state)
{
	static const enum group_by by[] = { BY_STACK, BY_FUNCTION, BY_FILE, BY_LINE, BY_MODULE };
	struct report plain;

	(void)state;
	make_snake(&plain, (struct report_options){ .symbols = false, .native = true });
	for (size_t i = 0; i < 2 * sizeof by / sizeof by[0]; i++) {
		struct estimate_sum rows[FIGURE_COUNT] = { 0 }, own[FIGURE_COUNT] = { 0 };
		struct report r;
		make_snake(&r, (struct report_options){ .symbols = false, .by = by[i / 2], .native = i % 2 });
		for (int f = 0; f < FIGURE_COUNT; f++) {
			for (size_t k = 0; k < r.rows.count; k++)
				estimate_merge(&rows[f], &r.rows.list[k].sum[f]);
			for (size_t k = 0; k < r.groups.count; k++)
				estimate_merge(&own[f], &r.groups.list[k].exclusive[f]);
			const struct estimate_sum *sums[] = { &r.total.sum[f], &rows[f],
				                              by[i / 2] == BY_STACK ? &rows[f] : &own[f] };
			const struct estimate_sum *all = &plain.total.sum[f];
			for (size_t k = 0; k < 3; k++) {
				assert_int_equal(sums[k]->samples, all->samples);
				assert_true(fabs(sums[k]->value - all->value) <= 1e-9 * all->value);
				assert_true(fabs(sums[k]->variance - all->variance) <= 1e-9 * all->variance);
			}
		}
		report_done(&r);
	}
	report_done(&plain);
}

/* Where two native stacks are one in Python, the row has the sum of both, and an interval to match. */
static void test_equal_rows_are_merged(void **state)
{
	const uint64_t glue = DUMP_FRAME(1, 0x420000), evaluator = DUMP_FRAME(1, DUMP_BUILDER_EVALUATOR + 8);
	const uint64_t first[] = { glue, evaluator }, second[] = { glue, glue, evaluator, glue };
	struct dump_builder b;
	struct report r;

	(void)state;
	dump_builder_init(&b, 65536, 64, 8, 0);
	dump_builder_header(&b)->python_version = 0x030d00f0;
	dump_builder_header(&b)->evaluators[0] = (struct dump_evaluator){ DUMP_BUILDER_EVALUATOR, 64 };
	dump_builder_module(&b, 1, 0, 0x400000, 0x900000, "/opt/libpython3.13.so.1.0", NULL, 0, 0);
	/* The same function was compiled twice. */
	const uint32_t code[] = { dump_builder_code(&b, "f", "/a/f.py", 5, 4, 1),
		                  dump_builder_code(&b, "f", "/a/f.py", 5, 4, 1) };
	const uint64_t python[] = { DUMP_PYTHON_FRAME(code[0], 1, 2), DUMP_PYTHON_FRAME(code[1], 1, 2) };
	const uint32_t s = dump_builder_python_stack(&b, first, 2, &python[0], 1, 0);
	const uint32_t t = dump_builder_python_stack(&b, second, 4, &python[1], 1, 0);
	for (int i = 0; i < 12; i++)
		dump_builder_sample(&b, i % 3 ? s : t, 1000, 65536, 1);
	make(&r, &b, (struct report_options){ .symbols = false });
	assert_true(report_complete(&r));
	assert_int_equal(r.rows.count, 1);
	assert_int_equal(r.stack_count, 2);
	assert_int_equal(row_of(&r, "f:6")->sum[FIGURE_LIVE_BYTES].samples, 12);
	struct estimate row = report_estimate(&r, &r.rows.list[0], FIGURE_LIVE_BYTES);
	struct estimate total = report_estimate(&r, &r.total, FIGURE_LIVE_BYTES);
	assert_true(row.low <= total.low && row.high == total.high && row.value == total.value); /* estimate.h */
	report_done(&r);
	make(&r, &b, (struct report_options){ .symbols = false, .native = true });
	assert_int_equal(r.rows.count, 2);
	report_done(&r);
	dump_builder_done(&b);
}

/* python3 -X perf: code that the interpreter makes is between a function and its caller. */
static void test_entrances_are_left_out(void **state)
{
	const uint64_t glue = DUMP_FRAME(1, 0x420000), evaluator = DUMP_FRAME(1, DUMP_BUILDER_EVALUATOR + 8);
	const uint64_t own = DUMP_FRAME(0, 0x7f0000001004);
	const uint64_t whole[] = { own, glue, evaluator, own, glue, evaluator, own },
		       ended[] = { glue, evaluator, own };
	struct dump_builder b;
	struct report r;

	(void)state;
	for (int native = 0; native < 2; native++) {
		dump_builder_init(&b, 65536, 64, 8, 0);
		dump_builder_header(&b)->python_version = 0x030d00f0;
		dump_builder_header(&b)->evaluators[0] = (struct dump_evaluator){ DUMP_BUILDER_EVALUATOR, 64 };
		dump_builder_module(&b, 1, 0, 0x400000, 0x900000, "/opt/libpython3.13.so.1.0", NULL, 0, 0);
		const uint32_t f = dump_builder_code(&b, "f", "/a/f.py", 5, 4, 1),
			       g = dump_builder_code(&b, "g", "/a/f.py", 50, 4, 1);
		const uint64_t python[] = { DUMP_PYTHON_FRAME(f, 1, 2), DUMP_PYTHON_FRAME(g, 1, 2) };
		const uint32_t s = dump_builder_python_stack(&b, whole, 7, python, 2, 0);
		const uint32_t t = dump_builder_python_stack(&b, ended, 3, python, 2, DUMP_STACK_TRUNCATED);
		dump_builder_sample(&b, s, 1000, 65536, 1);
		dump_builder_sample(&b, t, 1000, 65536, 1);
		make(&r, &b, (struct report_options){ .symbols = false, .native = native });
		if (native) {
			row_of(&r, "own code:0 < libpython3.13.so.1.0:0 < f:6 < own code:0 < libpython3.13.so.1.0:0 < "
			           "g:51 < "
			           "own code:0");
			row_of(&r, "libpython3.13.so.1.0:0 < f:6 < own code:0 < g:51");
		} else { /* what Python has called is shown */
			row_of(&r, "own code:0 < f:6 < g:51");
			assert_int_equal(row_of(&r, "f:6 < g:51")->flags, 0);
		}
		assert_int_equal(r.rows.count, 2);
		report_done(&r);
		dump_builder_done(&b);
	}
}

/* Two frames of the evaluator without a Python frame: of another interpreter, further in, unless greenlet is there. */
static void test_greenlet_is_known_by_its_file(void **state)
{
	static const char innermost[] = "f:6 < other.so:0", outermost[] = "other.so:0 < f:6";
	static const struct {
		const char *path, *row;
	} cases[] = {
		{ "/usr/lib/python3/greenlet.cpython-39-x86_64-linux-gnu.so", innermost },
		{ "/opt/greenlet/_greenlet.cpython-310-x86_64-linux-gnu.so", innermost },
		{ "/opt/greenlet/_greenlets.so", outermost },
	};
	const uint64_t evaluator = DUMP_FRAME(1, DUMP_BUILDER_EVALUATOR + 8);
	const uint64_t native[] = { evaluator, evaluator, DUMP_FRAME(2, 0x1004), evaluator };
	struct dump_builder b;
	struct report r;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		dump_builder_init(&b, 65536, 64, 8, 0);
		dump_builder_header(&b)->python_version = 0x030900f0;
		dump_builder_header(&b)->evaluators[0] = (struct dump_evaluator){ DUMP_BUILDER_EVALUATOR, 64 };
		dump_builder_module(&b, 1, 0, 0x400000, 0x900000, "/opt/libpython3.9.so.1.0", NULL, 0, 0);
		dump_builder_module(&b, 2, 0, 0x1000, 0x2000, "/opt/other.so", NULL, 0, 0);
		dump_builder_module(&b, 3, 0, 0xa00000, 0xa01000, cases[i].path, NULL, 0, 0);
		const uint64_t python = DUMP_PYTHON_FRAME(dump_builder_code(&b, "f", "/a/f.py", 5, 4, 1), 1, 2);
		dump_builder_sample(&b, dump_builder_python_stack(&b, native, 4, &python, 1, 0), 1000, 65536, 1);
		make(&r, &b, (struct report_options){ .symbols = false });
		row_of(&r, cases[i].row);
		report_done(&r);
		dump_builder_done(&b);
	}
}

/* Code that had no room is not known, but nothing is damaged. */
static void test_code_without_room(void **state)
{
	const uint64_t native = DUMP_FRAME(1, DUMP_BUILDER_EVALUATOR + 8), python = DUMP_PYTHON_FRAME(0, 1, 2);
	struct dump_builder b;
	struct report r;

	(void)state;
	dump_builder_init(&b, 65536, 64, 8, 0);
	dump_builder_header(&b)->python_version = 0x030d00f0;
	dump_builder_header(&b)->evaluators[0] = (struct dump_evaluator){ DUMP_BUILDER_EVALUATOR, 64 };
	dump_builder_module(&b, 1, 0, 0x400000, 0x900000, "/usr/bin/python3.13", NULL, 0, 0);
	dump_builder_sample(&b, dump_builder_python_stack(&b, &native, 1, &python, 1, 0), 1000, 65536, 1);
	make(&r, &b, (struct report_options){ .symbols = false });
	row_of(&r, "(unknown Python function):0");
	assert_true(r.whole);
	assert_int_equal(r.python.samples, 1);
	assert_int_equal(r.python.complete, 0);
	report_done(&r);
	dump_builder_done(&b);
}

static uint64_t kept(const char *focus, const char *ignore, const char *hide)
{
	struct report r;

	make_snake(&r, (struct report_options){ .symbols = false,
	                                        .filter = { .focus = focus, .ignore = ignore, .hide = hide } });
	uint64_t samples = r.total.sum[FIGURE_ALLOCATED_COUNT].samples;
	report_done(&r);
	return samples;
}

static void test_filters(void **state)
{
	struct report r;

	(void)state;
	assert_int_equal(kept("Views[.]handle", NULL, NULL), 20);
	assert_int_equal(kept("^pandas[.]core[.]frame$", NULL, NULL), 20);
	assert_int_equal(kept("tiles[.]py$", NULL, NULL), 26);
	assert_int_equal(kept(NULL, "load_tiles", NULL), 1);
	assert_int_equal(kept("unknown Python", NULL, NULL), 3);
	assert_int_equal(kept(NULL, NULL, "Views|DataFrame|_multiarray"), 27);
	make_snake(&r,
	           (struct report_options){ .symbols = false, .filter = { .hide = "Views|DataFrame|_multiarray" } });
	/* Without those frames the arrays are at the same line as others. */
	assert_int_equal(row_of(&r, "load_tiles:82")->sum[FIGURE_ALLOCATED_COUNT].samples, 23);
	report_done(&r);
}

static const struct group *group_of(const struct report *r, const char *name)
{
	for (size_t i = 0; i < r->groups.count; i++)
		if (!strcmp(r->groups.list[i].name, name))
			return &r->groups.list[i];
	fail_msg("no group %s", name);
	return NULL;
}

static void test_groups(void **state)
{
	const int f = FIGURE_ALLOCATED_COUNT;
	struct report r;

	(void)state;
	make_snake(&r, (struct report_options){ .symbols = false, .by = BY_LINE });
	assert_int_equal(group_of(&r, "/srv/app/tiles.py:82")->exclusive[f].samples, 23);
	assert_int_equal(group_of(&r, PYTHON_MODULE ":700")->inclusive[f].samples, 20);
	assert_says(text_of(&r), "  tiles.py:82\n");
	report_done(&r);
	make_snake(&r, (struct report_options){ .symbols = false, .by = BY_FUNCTION });
	assert_int_equal(group_of(&r, "load_tiles")->exclusive[f].samples, 6);
	assert_int_equal(group_of(&r, "load_tiles")->inclusive[f].samples, 26);
	report_done(&r);
	make_snake(&r, (struct report_options){ .symbols = false, .by = BY_MODULE });
	assert_int_equal(group_of(&r, "pandas.core.frame")->inclusive[f].samples, 20);
	assert_int_equal(group_of(&r, "/srv/app/tiles.py")->exclusive[f].samples, 6);
	assert_int_equal(group_of(&r, "python")->inclusive[f].samples, 3);
	report_done(&r);
}

static void test_text_and_json(void **state)
{
	struct report r;

	(void)state;
	make_snake(&r, (struct report_options){ .symbols = false });
	assert_says(text_of(&r), "        load_tiles");
	assert_says(text_of(&r), "  tiles.py:82\n");
	assert_says(text_of(&r), "  pkg/views.py:31\n");
	assert_says(text_of(&r), "DataFrame.?[1m\xc3\xa9");
	assert_says(text_of(&r), "pandas/core/frame.py:700\n");
	assert_says(text_of(&r), "3.11.2, in the stacks of 26 samples; 76.9 % of these have all of its frames");
	assert_says(json_of(&r), "  \"python\": {\n    \"version\": \"3.11.2\",\n    \"samples\": 26,\n    "
	                         "\"samples_complete\": 20,\n    \"native\": false\n");
	assert_says(json_of(&r), "\"function\":\"DataFrame.\\u001b[1m\xc3\xa9\",\"file\":\"" PYTHON_MODULE
	                         "\",\"line\":700,\"module\":3,\"language\":\"python\"}");
	assert_says(json_of(&r), "{\"path\":\"pandas.core.frame\",\"build_id\":null,\"symbols\":null,\"reason\":null}");
	report_done(&r);
	brief = true;
	make_snake(&r, (struct report_options){ .symbols = false });
	assert_says(text_of(&r), " pkg/views.py:31\n");
	report_done(&r);
	brief = false;
}

static char *output_of(const struct report *r, const char *name, size_t *size)
{
	const struct output_style style = { .name = "x" };
	const struct output_format *format;
	struct err e;
	char *text;

	assert_int_equal(output_format_find(name, &format, &e), 0);
	FILE *out = open_memstream(&text, size);
	assert_int_equal(output_format_write(format, r, &style, out), 0);
	fclose(out);
	return text;
}

static void test_other_outputs(void **state)
{
	struct report r;
	size_t size;

	(void)state;
	make_snake(&r, (struct report_options){ .symbols = false });
	assert_says(output_of(&r, "collapsed", &size),
	            "DataFrame.\xef\xbf\xbd[1m\xc3\xa9;Views.handle;load_tiles;_multiarray_umath.so+0x234 ");
	assert_says(output_of(&r, "speedscope", &size), "{\"name\":\"load_tiles\",\"file\":\"/srv/app/tiles.py\"}");
	assert_says(output_of(&r, "dhat", &size), "\"0x0: load_tiles (/srv/app/tiles.py:82)\"");
	report_done(&r);
}

/* Of two dumps, the same lines are the same rows, whatever the modules are numbered. */
static void test_two_dumps(void **state)
{
	struct dump_builder old, new;
	struct report r;

	(void)state;
	dump_builder_snake(&old);
	dump_builder_snake(&new);
	dump_builder_module(&new, 9, 0x1000, 0x1000, 0x2000, "/lib/other.so", NULL, 0, 0);
	compare(&r, &old, &new);
	assert_int_equal(r.rows.count, 4);
	assert_int_equal(r.python.samples, 26); /* of the newer one */
	for (size_t i = 0; i < r.rows.count; i++)
		assert_int_equal(r.rows.list[i].change->old[FIGURE_ALLOCATED_COUNT].samples,
		                 r.rows.list[i].sum[FIGURE_ALLOCATED_COUNT].samples);
	report_done(&r);
	dump_builder_done(&old);
	dump_builder_done(&new);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interpreter_is_left_out),
		cmocka_unit_test(test_native_frames_are_shown),
		cmocka_unit_test(test_sums_are_the_same),
		cmocka_unit_test(test_equal_rows_are_merged),
		cmocka_unit_test(test_filters),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_text_and_json),
		cmocka_unit_test(test_other_outputs),
		cmocka_unit_test(test_entrances_are_left_out),
		cmocka_unit_test(test_greenlet_is_known_by_its_file),
		cmocka_unit_test(test_code_without_room),
		cmocka_unit_test(test_two_dumps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
