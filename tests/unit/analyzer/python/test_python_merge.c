/* SPDX-License-Identifier: MIT */
/* Native and Python frames become one stack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "python/python_merge.h"

#define EVALUATOR 0x1000u

/*
 * native: one letter for each frame, innermost first; E is one of the evaluator. python: one digit for each Python
 * frame, "|" after those for which the evaluator was entered. The result is in the same letters.
 */
static bool merge_with(bool coroutines, const char *native, const char *python, uint32_t flags, uint32_t first,
                       char *result)
{
	static struct dump_stack_copy copy;
	static struct merged_stack merged;
	struct dump_header h = { .evaluators = { [2] = { EVALUATOR, 0x10 } } };
	uint32_t count = 0;

	copy = (struct dump_stack_copy){ .stack = { .frame_count = (uint32_t)strlen(native) } };
	for (uint32_t i = 0; native[i]; i++)
		copy.frames[i] = native[i] == 'E' ? DUMP_FRAME_ADDRESS(EVALUATOR + 1 + i % 16) : (uint64_t)native[i];
	for (; *python; python++)
		if (*python != '|')
			copy.frames[strlen(native) + count++] = DUMP_PYTHON_FRAME(*python, python[1] == '|', 4);
	copy.stack.flags = flags | DUMP_STACK_PYTHON_FLAGS(count);
	python_merge(&h, &copy, first, coroutines, &merged);
	for (uint32_t i = 0; i < merged.count; i++) {
		const struct merged_frame *f = &merged.frames[i];
		*result++ = f->python                          ? (char)DUMP_PYTHON_REFERENCE(f->word)
		            : python_is_evaluator(&h, f->word) ? 'E'
		                                               : (char)f->word;
	}
	*result = 0;
	return merged.fits;
}

static bool merge(const char *native, const char *python, uint32_t flags, uint32_t first, char *result)
{
	return merge_with(false, native, python, flags, first, result);
}

static void test_merging(void **state)
{
	const uint32_t whole = 0, cut = DUMP_STACK_TRUNCATED, deep = DUMP_STACK_DEEP;
	const uint32_t python_cut = DUMP_STACK_PYTHON_TRUNCATED, python_deep = DUMP_STACK_PYTHON_DEEP;
	const uint32_t inner = DUMP_STACK_PYTHON_INNER, outer = DUMP_STACK_PYTHON_OUTER;
	const struct {
		const char *native, *python;
		uint32_t flags;
		const char *result;
		bool fits;
	} cases[] = {
		{ "aEbEc", "1|2|", whole, "a1b2c", true },       /* each call enters the evaluator */
		{ "aEbEc", "123|45|", whole, "a123b45c", true }, /* many do not */
		{ "aEb", "12", whole, "a12b", true },            /* the outermost need not be marked */
		{ "", "", whole, "", true },
		{ "abc", "", whole, "abc", true },
		{ "aEbEcEd", "12|3|", whole, "aEb12c3d", true }, /* the innermost is being set up */
		{ "EbE", "1|", whole, "Eb1", true },
		{ "EbEcE", "1|", whole, "EbEc1", false }, /* but not two of them */
		{ "EbEcEdE", "12|3|", cut, "EbEc12d3", false },
		{ "aEbEc", "1|2|3|", whole, "a12b3c", false }, /* too many groups: with the innermost */
		{ "aEbEc", "1|2|3|45|", whole, "a123b45c", false },
		{ "ab", "1|2|", whole, "ab12", false }, /* no frame of the evaluator at all */
		{ "aE", "", whole, "aE", true },
		{ "aEbEc", "1|2|3|4|", cut, "a1b2c34", true }, /* the outer native frames are missing */
		{ "aEbEc", "1|2|3|4|", deep, "a1b2c34", true },
		{ "ab", "1|23|", cut, "ab123", true },
		{ "aEbEcEd", "1|2|", cut, "aEb1c2d", true },       /* more of the evaluator although some are missing */
		{ "aEbEcEd", "1|2", python_cut, "a1b2cEd", true }, /* the outer Python frames are missing */
		{ "aEbEcEd", "1|2", python_deep | deep, "a1b2cEd", true },
		{ "aEbEc", "1|2|3", python_cut, "a1b2c3", false },
		{ "aEbEc", "1|2", inner, "a1b2c", true }, /* none is missing */
		{ "aEbEc", "1|2", outer, "a1b2c", true },
		{ "aEbEcE", "1|2", inner, "aEb1c2", false }, /* those further in */
		{ "aEbEcE", "1|2", inner | cut, "aEb1c2", false },
		{ "aEbEcE", "1|2", outer, "a1b2cE", false }, /* those further out */
		{ "aEbEcEdE", "1|2", outer | cut, "a1b2cEdE", false },
	};
	char result[64];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		bool fits = merge(cases[i].native, cases[i].python, cases[i].flags, 0, result);
		assert_string_equal(result, cases[i].result);
		if (fits != cases[i].fits)
			fail_msg("%s and %s", cases[i].native, cases[i].python);
	}
	merge("xyEa", "1|", 0, 2, result);
	assert_string_equal(result, "1a"); /* without the allocator's own */
}

/* Coroutines use one stack in turns: what is further out is that of others. */
static void test_coroutines(void **state)
{
	const struct {
		const char *native, *python;
		uint32_t flags;
		const char *result;
		bool fits;
	} cases[] = {
		{ "EbEcE", "1|", 0, "1bEcE", false },
		{ "EbEcEdE", "12|3|", DUMP_STACK_TRUNCATED, "12b3cEdE", false },
		{ "aEbEcEd", "12|3|", 0, "aEb12c3d", true }, /* one: the innermost is being set up */
		{ "EbEcE", "1|", DUMP_STACK_PYTHON_INNER, "EbEc1", false },
	};
	char result[64];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		bool fits = merge_with(true, cases[i].native, cases[i].python, cases[i].flags, 0, result);
		assert_string_equal(result, cases[i].result);
		assert_int_equal(fits, cases[i].fits);
	}
}

/* Whatever the lists are, nothing is lost, nothing comes twice, and both keep their order. */
static void test_nothing_is_lost(void **state)
{
	char native[140], python[260], result[300], order[300];

	(void)state;
	srand(11);
	for (int turn = 0; turn < 20000; turn++) {
		size_t n = (size_t)rand() % 12, m = (size_t)rand() % 12, used = 0, at = 0, evaluators = 0;
		for (size_t i = 0; i < n; i++)
			native[i] = rand() % 3 ? 'E' : (char)('a' + i);
		native[n] = 0;
		for (size_t i = 0; i < m; i++) {
			python[used++] = (char)('A' - 32 + i);
			if (rand() % 2)
				python[used++] = '|';
		}
		python[used] = 0;
		merge_with(rand() % 2, native, python,
		           (uint32_t)rand() & (15u | DUMP_STACK_PYTHON_INNER | DUMP_STACK_PYTHON_OUTER), 0, result);
		for (char *s = result; *s; s++)
			if (*s < 'A')
				order[at++] = *s;
		for (size_t i = 0; i < at; i++)
			assert_int_equal(order[i], 'A' - 32 + i);
		assert_int_equal(at, m);
		at = 0;
		for (char *s = result; *s; s++)
			if (*s >= 'a')
				order[at++] = *s;
			else
				evaluators += *s == 'E';
		order[at] = 0;
		const char *left = order;
		for (char *s = native; *s; s++)
			if (*s != 'E')
				assert_int_equal(*s, *left++);
		assert_int_equal(*left, 0);
		assert_true(evaluators <= n);
	}
}

static void test_fullest_stack(void **state)
{
	static char native[DUMP_FRAMES_MAX + 1], python[2 * DUMP_PYTHON_FRAMES_MAX + 1], result[PYTHON_MERGED_MAX + 1];

	(void)state;
	memset(native, 'x', DUMP_FRAMES_MAX);
	memset(python, '1', DUMP_PYTHON_FRAMES_MAX);
	assert_false(merge(native, python, 0, 0, result));
	assert_int_equal(strlen(result), PYTHON_MERGED_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merging),
		cmocka_unit_test(test_coroutines),
		cmocka_unit_test(test_nothing_is_lost),
		cmocka_unit_test(test_fullest_stack),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
