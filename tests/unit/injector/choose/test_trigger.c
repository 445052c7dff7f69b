/* SPDX-License-Identifier: MIT */
/* Conditions over memory that is made up: what they are parsed from, and when they hold. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "choose/trigger.h"

#define SECOND 1000000000ull
#define MB (1ull << 20)

static struct trigger parsed(const char *text)
{
	struct trigger t;
	struct err e;

	assert_int_equal(trigger_parse(text, &t, &e), 0);
	return t;
}

static void test_trigger_parse_knows_the_figures(void **state)
{
	struct trigger t = parsed("rss>2G");

	(void)state;
	assert_int_equal(t.figure, TRIGGER_RSS);
	assert_int_equal(t.bytes, 2ull << 30);
	t = parsed("private>512M");
	assert_int_equal(t.figure, TRIGGER_PRIVATE);
	assert_int_equal(t.bytes, 512 * MB);
	t = parsed("growth>100M/1.5m");
	assert_int_equal(t.figure, TRIGGER_GROWTH);
	assert_int_equal(t.bytes, 100 * MB);
	assert_int_equal(t.window_ns, 90 * SECOND);
	assert_string_equal(t.text, "growth>100M/1.5m");
	t = parsed("cgroup>90%");
	assert_int_equal(t.figure, TRIGGER_CGROUP);
	assert_true(t.part > 0.899 && t.part < 0.901);
	t = parsed("pressure>0.5%");
	assert_int_equal(t.figure, TRIGGER_PRESSURE);
	assert_true(t.part > 0.0049 && t.part < 0.0051);
}

static void test_trigger_parse_refuses_what_it_does_not_know(void **state)
{
	static const char *const bad[] = { "",
		                           "rss",
		                           "rss>",
		                           "rss<2G",
		                           "rss>=2G",
		                           "rss>2X",
		                           "rss>2G/1m",
		                           "growth>100M",
		                           "growth>/1m",
		                           "growth>100M/",
		                           "growth>x/1m",
		                           "growth>1M/1x",
		                           "growth>1M/500ms",
		                           "growth>1M/1m/1m",
		                           "heap>1M",
		                           "cgroup>90",
		                           "cgroup>2G",
		                           "cgroup>0%",
		                           "cgroup>100%",
		                           "cgroup>-1%",
		                           "pressure>",
		                           "pressure>10%/1m",
		                           "RSS>1G",
		                           " rss>1G",
		                           "growth>0000000000000000000000000000000000000000"
		                           "00000000000000000000001/1m" };
	struct trigger t = { .bytes = 7 };
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_true(trigger_parse(bad[i], &t, &e) < 0);
		assert_true(e.text[0] != 0);
	}
	assert_int_equal(t.bytes, 7);
}

static void test_trigger_look_compares_rss_and_private(void **state)
{
	struct trigger rss = parsed("rss>100M"), private = parsed("private>100M");
	struct trigger_watch w = { 0 };
	char text[TRIGGER_TEXT];

	(void)state;
	assert_false(trigger_look(&w, &rss, &(struct memory_use){ 100 * MB, 200 * MB, 200 * MB, 0, 0 }, 0));
	assert_true(trigger_look(&w, &rss, &(struct memory_use){ .resident = 100 * MB + 1 }, 1));
	assert_string_equal(trigger_say(&w, &rss, text), "rss is 100 MiB");
	assert_false(trigger_look(&w, &private, &(struct memory_use){ 500 * MB, 60 * MB, 40 * MB, 0, 0 }, 2));
	assert_true(trigger_look(&w, &private, &(struct memory_use){ 500 * MB, 60 * MB, 41 * MB, 0, 0 }, 3));
	assert_string_equal(trigger_say(&w, &private, text), "private memory is 101 MiB");
}

/* Looks every 200 ms for so long, while memory grows by so much per second from *bytes on. True as soon as one holds.
 */
static bool grow(struct trigger_watch *w, const struct trigger *t, double *bytes, double per_second, double seconds,
                 uint64_t *now)
{
	for (uint64_t end = *now + (uint64_t)(seconds * SECOND); *now < end;) {
		*now += SECOND / 5;
		*bytes += per_second / 5;
		if (trigger_look(w, t, &(struct memory_use){ .anonymous = (uint64_t)*bytes }, *now))
			return true;
	}
	return false;
}

static void test_growth_is_that_within_the_time(void **state)
{
	struct trigger t = parsed("growth>100M/1m");
	struct trigger_watch w = { 0 };
	uint64_t now = 77 * SECOND;
	double bytes = 1e9;

	(void)state;
	/* Hours of what is too slow; the parts of the window are a 128th. */
	assert_false(grow(&w, &t, &bytes, 98.0 * MB / 60, 7200, &now));
	assert_true(w.value > 97 * MB && w.value < 100 * MB);
	assert_true(grow(&w, &t, &bytes, 102.0 * MB / 60, 61, &now));
	assert_true(w.took_ns <= 60 * SECOND + SECOND / 2);
}

static void test_growth_is_seen_as_soon_as_it_has_happened(void **state)
{
	struct trigger t = parsed("growth>100M/1m");
	struct trigger_watch w = { 0 };
	uint64_t now = SECOND;
	double bytes = 1e9;
	char text[TRIGGER_TEXT];

	(void)state;
	assert_false(grow(&w, &t, &bytes, 0, 300, &now));
	uint64_t began = now;
	assert_true(grow(&w, &t, &bytes, 50.0 * MB, 10, &now));
	assert_true(now - began < 3 * SECOND);
	assert_string_equal(trigger_say(&w, &t, text), "private memory grew by 110 MiB within 2.2 s");
}

static void test_growth_counts_from_the_least(void **state)
{
	struct trigger t = parsed("growth>100M/1m");
	struct trigger_watch w = { 0 };
	uint64_t now = SECOND;
	double bytes = 500.0 * MB;
	char text[TRIGGER_TEXT];

	(void)state;
	assert_false(grow(&w, &t, &bytes, 0, 5, &now));
	assert_false(grow(&w, &t, &bytes, -30.0 * MB, 10, &now)); /* 300 MB are given back */
	assert_int_equal(w.value, 0);
	assert_string_equal(trigger_say(&w, &t, text), "private memory has not grown");
	assert_true(grow(&w, &t, &bytes, 50.0 * MB, 10, &now)); /* though it had more a few seconds ago */
	assert_true(bytes < 311.0 * MB);
}

static void test_growth_takes_any_time_and_any_pause(void **state)
{
	static const char *const texts[] = { "growth>1G/1s", "growth>1G/7s", "growth>1G/1h", "growth>1G/365d" };

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct trigger t = parsed(texts[i]);
		struct trigger_watch w = { 0 };
		uint64_t now = 1;
		for (unsigned k = 0; k < 100000; k++) {
			assert_false(trigger_look(&w, &t, &(struct memory_use){ .anonymous = k }, now));
			assert_true(w.count > 0 && w.count <= TRIGGER_PARTS + 4 && w.value <= k);
			now += k % 1000 == 7 ? t.window_ns * 2 : k % 3 ? t.window_ns / TRIGGER_PARTS : 1;
		}
	}
}

static void test_trigger_look_part_compares_parts(void **state)
{
	struct trigger t = parsed("cgroup>90%");
	struct trigger_watch w = { 0 };
	char text[TRIGGER_TEXT];

	(void)state;
	assert_true(trigger_is_part(&t));
	assert_false(trigger_look_part(&w, &t, 0.899));
	assert_false(trigger_look_part(&w, &t, NAN)); /* the limit was taken away */
	assert_true(trigger_look_part(&w, &t, 0.93));
	assert_string_equal(trigger_say(&w, &t, text), "its cgroup uses 93 % of its limit");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trigger_parse_knows_the_figures),
		cmocka_unit_test(test_trigger_parse_refuses_what_it_does_not_know),
		cmocka_unit_test(test_trigger_look_compares_rss_and_private),
		cmocka_unit_test(test_growth_is_that_within_the_time),
		cmocka_unit_test(test_growth_is_seen_as_soon_as_it_has_happened),
		cmocka_unit_test(test_growth_counts_from_the_least),
		cmocka_unit_test(test_growth_takes_any_time_and_any_pause),
		cmocka_unit_test(test_trigger_look_part_compares_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
