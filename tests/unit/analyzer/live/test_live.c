/* SPDX-License-Identifier: MIT */
/* The live view without its terminal: what is read from look to look, keys, and lines. */
#include "views.h"

#include "live/live_screen.h"

enum { BLOCKS = 300, EARLY = 200 };

static const struct live_frame no_frame;

static void set_end(struct dump_builder *b, double seconds)
{
	struct dump_header *h = dump_builder_header(b);

	h->clock_latest = h->clock_start;
	h->clock_latest.stamp += (uint64_t)(seconds * (double)SECOND);
	h->clock_latest.monotonic_ns += (uint64_t)(seconds * 1e9);
	h->clock_latest.realtime_ns += (uint64_t)(seconds * 1e9);
	h->session_id = 77;
}

/* A block every fiftieth of a second; later a fifth of the first ones are freed, and others have come. */
static void build(struct dump_builder *b, bool later)
{
	uint32_t stacks[2];
	uint64_t address = 0;

	dump_builder_init(b, RATE, 1024, 16, 8);
	stacks[0] = dump_builder_stack(b, frames_a, 2, 0);
	stacks[1] = dump_builder_stack(b, frames_b, 2, 0);
	for (int i = 0; i < (later ? BLOCKS : EARLY); i++) {
		uint64_t size = 100 + (uint64_t)i * 997 % 40000;
		bool freed = later && i < EARLY && i % 5 == 0;
		sample(b, stacks[i % 3 == 0], size, RATE, i * 0.02, freed ? 5 : 0);
		address += 4096;
		if (!freed)
			live_record(b, b->live_used - 1)->address = address;
	}
	set_end(b, later ? 10 : 4);
}

static void look(struct live_heap *heap, struct dump_builder *b, bool expected_anew)
{
	struct dump *dump = open_built(b);
	bool anew;

	assert_int_equal(live_heap_look(heap, dump, &anew), 0);
	assert_int_equal(anew, expected_anew);
	dump_close(dump);
}

static void assert_near(double a, double b)
{
	if (!(fabs(a - b) <= 1e-6 * (fabs(a) + fabs(b)) + 1e-6))
		fail_msg("%.17g is not %.17g", a, b);
}

static void assert_same(const struct estimate_sum *a, const struct estimate_sum *b)
{
	assert_int_equal(a->samples, b->samples);
	assert_near(a->value, b->value);
	assert_near(a->variance, b->variance);
	assert_near(a->seen, b->seen);
	assert_near(a->next, b->next);
}

static const struct live_stack *stack_with(const struct live_heap *heap, uint64_t address)
{
	for (size_t i = 0; i < heap->count; i++)
		if (heap->list[i].place_count && PLACE_OFFSET(heap->list[i].places[0]) == address)
			return &heap->list[i];
	fail_msg("no stack of %llx", (unsigned long long)address);
	return NULL;
}

/* Growth between two looks is that of --diff of two copies, stack by stack. */
static void test_growth_is_that_of_a_comparison(void **state)
{
	struct dump_builder old, new;
	struct live_heap heap;
	struct report r;

	(void)state;
	build(&old, false);
	build(&new, true);
	assert_int_equal(live_heap_init(&heap, NULL), 0);
	look(&heap, &old, false);
	assert_near(live_heap_window(&heap), 0);
	look(&heap, &new, false);
	assert_near(live_heap_window(&heap), 6);
	compare(&r, &old, &new);
	assert_true(r.same_session);
	for (int i = 0; i < 2; i++) {
		uint64_t address = i ? 0x400100 : 0x400300;
		const struct report_row *row = row_with(&r, address);
		const struct live_stack *stack = stack_with(&heap, address);
		struct estimate_sum plus, minus;
		live_heap_growth(&heap, stack, &plus, &minus);
		assert_true(plus.samples > 10 && minus.samples > 10);
		assert_same(&plus, &row->change->plus[FIGURE_LIVE_BYTES]);
		assert_same(&minus, &row->change->minus[FIGURE_LIVE_BYTES]);
		assert_same(&stack->live[0], &row->sum[FIGURE_LIVE_BYTES]);
		assert_near(stack->allocated, row->sum[FIGURE_ALLOCATED_BYTES].value);
		struct estimate a = live_heap_estimate(&heap, stack, true, 0.95);
		struct estimate b = report_estimate(&r, row, FIGURE_LIVE_BYTES);
		assert_near(a.low, b.low);
		assert_near(a.high, b.high);
	}
	report_done(&r);
	live_heap_done(&heap);
	dump_builder_done(&old);
	dump_builder_done(&new);
}

/* Growth is over a window that moves on. */
/* Its names are in the dump, with or without symbols. */
static void test_lines_of_python(void **state)
{
	static const struct {
		enum group_by by;
		const char *name;
	} views[] = { { BY_STACK, "load_tiles tiles.py:82 < Views.handle < DataFrame.?[1m\xc3\xa9" },
		      { BY_LINE, "tiles.py:82" },
		      { BY_FUNCTION, "load_tiles  (tiles.py)" },
		      { BY_MODULE, "tiles.py" } };
	struct dump_builder b;
	struct live_heap heap;
	struct live_names names;
	bool left;

	(void)state;
	dump_builder_snake(&b);
	assert_int_equal(live_heap_init(&heap, NULL), 0);
	look(&heap, &b, false);
	live_names_init(&names, false);
	for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
		char text[LIVE_NAME_TEXT];
		bool found = false;
		live_names_set(&names, &heap, views[i].by);
		assert_int_equal(live_names_group(&names, &heap, 100, &left), 0);
		for (size_t k = 1; k < heap.count; k++) {
			live_names_stack(&names, &heap, &heap.list[k], text);
			if (views[i].by != BY_STACK)
				strcpy(text, live_names_text(&names, heap.list[k].group));
			found = found || !strcmp(text, views[i].name);
			if (k + 1 == heap.count && !found)
				fail_msg("no %s, but %s", views[i].name, text);
		}
	}
	live_names_done(&names);
	live_heap_done(&heap);
	dump_builder_done(&b);
}

static void test_window_moves(void **state)
{
	static const double moments[] = { 10, 20, 41, 55, 72, 103 }, windows[] = { 0, 10, 31, 45, 31, 31 };
	struct dump_builder b;
	struct live_heap heap;

	(void)state;
	build(&b, true);
	assert_int_equal(live_heap_init(&heap, NULL), 0);
	for (size_t i = 0; i < sizeof moments / sizeof moments[0]; i++) {
		set_end(&b, moments[i]);
		look(&heap, &b, false);
		assert_near(live_heap_window(&heap), windows[i]);
	}
	live_heap_restart(&heap);
	assert_near(live_heap_window(&heap), 0);
	live_heap_done(&heap);
	dump_builder_done(&b);
}

/* Samples that stand for more than before cannot be compared with what they stood for. */
static void test_thinning_and_other_sessions_begin_anew(void **state)
{
	struct dump_rate_change change = { .bytes = sizeof change,
		                           .reason = DUMP_RATE_FULL,
		                           .stamp = START + 8 * SECOND,
		                           .old_bytes = RATE,
		                           .new_bytes = 2 * RATE,
		                           .thinned_bytes = 2 * RATE };
	struct dump_builder b;
	struct live_heap heap;

	(void)state;
	build(&b, true);
	assert_int_equal(live_heap_init(&heap, NULL), 0);
	look(&heap, &b, false);
	set_end(&b, 12);
	look(&heap, &b, false);
	assert_near(live_heap_window(&heap), 2);
	dump_builder_rate(&b, &change);
	dump_builder_header(&b)->thinnings = 1;
	set_end(&b, 14);
	look(&heap, &b, false);
	assert_near(live_heap_window(&heap), 0);
	assert_int_equal(heap.rate, 2 * RATE);
	set_end(&b, 17);
	look(&heap, &b, false);
	assert_near(live_heap_window(&heap), 3);
	dump_builder_header(&b)->session_id = 78;
	look(&heap, &b, true);
	assert_near(live_heap_window(&heap), 0);
	live_heap_done(&heap);
	dump_builder_done(&b);
}

static void test_rows_are_sorted_and_tested(void **state)
{
	struct dump_builder old, new;
	struct live_heap heap;
	struct live_names names;
	struct live_rows rows;

	(void)state;
	build(&old, false);
	build(&new, true);
	assert_int_equal(live_heap_init(&heap, NULL), 0);
	live_names_init(&names, false);
	look(&heap, &old, false);
	look(&heap, &new, false);
	assert_int_equal(live_rows_make(&rows, &heap, &names, LIVE_SORT_LIVE, live_rows_level(0.95, 0)), 0);
	assert_int_equal(rows.count, 2);
	assert_true(rows.list[0].figures->live[0].value >= rows.list[1].figures->live[0].value);
	assert_near(rows.list[0].growth + rows.list[1].growth, rows.total.growth);
	assert_int_equal(rows.total.verdict, 1);
	live_rows_done(&rows);
	bool left;
	live_names_set(&names, &heap, BY_MODULE);
	assert_int_equal(live_names_group(&names, &heap, 1, &left), 0);
	assert_true(left);
	assert_int_equal(live_names_group(&names, &heap, SIZE_MAX, &left), 0);
	assert_false(left);
	assert_int_equal(live_rows_make(&rows, &heap, &names, LIVE_SORT_GROWTH, live_rows_level(0.95, 1)), 0);
	assert_int_equal(rows.count, 1);
	assert_near(rows.list[0].figures->live[0].value, heap.total.live[0].value);
	assert_string_equal(live_names_text(&names, rows.list[0].group), "no module");
	live_rows_done(&rows);
	live_names_done(&names);
	live_heap_done(&heap);
	dump_builder_done(&old);
	dump_builder_done(&new);
}

/* All tests of a view together spend the error once. */
static void test_levels_add_up(void **state)
{
	double sum = 0;

	(void)state;
	for (uint64_t i = 0; i < 3000000; i++)
		sum += 2 * live_rows_level(0.95, i);
	assert_true(sum < 0.05 && sum > 0.05 * 0.999);
}

/* ---- keys ---- */

static void assert_key(const char *bytes, size_t length, enum live_key expected)
{
	enum live_key key;

	assert_int_equal(live_key_read(bytes, strlen(bytes), &key), length);
	assert_int_equal(key, expected);
}

static void test_keys(void **state)
{
	(void)state;
	assert_key("q", 1, LIVE_KEY_QUIT);
	assert_key(" x", 1, LIVE_KEY_PAUSE);
	assert_key("\xff", 1, LIVE_KEY_NONE);
	assert_key("\033[A", 3, LIVE_KEY_UP);
	assert_key("\033OB", 3, LIVE_KEY_DOWN);
	assert_key("\033[6~q", 4, LIVE_KEY_PAGE_DOWN);
	assert_key("\033[1;5Bq", 6, LIVE_KEY_DOWN);
	assert_key("\033[15~", 5, LIVE_KEY_NONE);
	assert_key("\033x", 1, LIVE_KEY_ESCAPE);
	assert_key("\r", 1, LIVE_KEY_ENTER);
	assert_key("/a", 1, LIVE_KEY_FILTER);
	assert_key("\033", 0, LIVE_KEY_NONE);
	assert_key("\033[1;", 0, LIVE_KEY_NONE);
	assert_key("\033[1111111111111111111", 16, LIVE_KEY_NONE); /* never more than a buffer holds */
	assert_key("", 0, LIVE_KEY_NONE);
}

static void test_choice(void **state)
{
	struct live_choice c = { .by = BY_STACK };

	(void)state;
	live_choice_apply(&c, LIVE_KEY_PAGE_DOWN, 100, 20);
	assert_int_equal(c.first, 20);
	live_choice_apply(&c, LIVE_KEY_END, 100, 20);
	assert_int_equal(c.first, 80);
	live_choice_apply(&c, LIVE_KEY_DOWN, 100, 20);
	assert_int_equal(c.first, 80);
	live_choice_apply(&c, LIVE_KEY_NONE, 30, 20); /* rows went meanwhile */
	assert_int_equal(c.first, 10);
	assert_int_equal(c.chosen, 29);
	live_choice_apply(&c, LIVE_KEY_UP, 5, 0);
	assert_true(c.first == 4 && c.chosen == 4);
	for (int i = 0; i <= BY_MODULE; i++)
		live_choice_apply(&c, LIVE_KEY_BY, 5, 20);
	assert_true(c.by == BY_STACK && c.first == 0);
	live_choice_apply(&c, LIVE_KEY_HELP, 5, 20);
	assert_true(c.help);
	live_choice_apply(&c, LIVE_KEY_PAUSE, 5, 20);
	assert_true(!c.help && c.paused && !c.quit);
	live_choice_apply(&c, LIVE_KEY_QUIT, 5, 20);
	assert_true(c.quit);
}

static void test_choice_of_a_row(void **state)
{
	struct live_choice c = { .by = BY_STACK };

	(void)state;
	for (int i = 0; i < 25; i++)
		live_choice_apply(&c, LIVE_KEY_DOWN, 100, 20);
	assert_true(c.chosen == 25 && c.first == 6); /* the rows follow the mark */
	live_choice_apply(&c, LIVE_KEY_ENTER, 100, 20);
	assert_true(c.whole);
	live_choice_apply(&c, LIVE_KEY_DOWN, 30, 20); /* of a stack of 30 lines */
	assert_true(c.line == 1 && c.chosen == 25 && c.first == 6);
	live_choice_apply(&c, LIVE_KEY_ESCAPE, 30, 20);
	assert_true(!c.whole && c.chosen == 25);
	live_choice_apply(&c, LIVE_KEY_ENTER, 0, 20);
	assert_true(!c.whole && c.chosen == 0); /* there is no row */
	c = (struct live_choice){ .first = 50, .chosen = 60, .help = true };
	live_choice_fit(&c, 55, 20); /* rows went meanwhile */
	assert_true(c.first == 35 && c.chosen == 54 && c.help);
}

static void test_filter_is_typed(void **state)
{
	struct live_choice c = { .by = BY_STACK, .first = 5, .chosen = 5 };

	(void)state;
	live_choice_apply(&c, LIVE_KEY_FILTER, 100, 20);
	assert_true(c.typing && c.chosen == 0 && c.first == 0);
	for (const char *s = "qa\xc3\xa4\xc3\xb6\x7f\x01"; *s; s++) /* the last character is taken back */
		live_choice_type(&c, *s);
	assert_string_equal(c.filter, "qa\xc3\xa4");
	live_choice_type(&c, '\r');
	assert_true(!c.typing && c.filter[0] && !c.quit);
	live_choice_apply(&c, LIVE_KEY_ESCAPE, 100, 20);
	assert_string_equal(c.filter, "");
	for (int i = 0; i < 100; i++)
		live_choice_type(&c, 'x');
	assert_int_equal(strlen(c.filter), LIVE_FILTER_TEXT - 1);
	for (int i = 0; i < 100; i++)
		live_choice_type(&c, '\b');
	assert_string_equal(c.filter, "");
}

/* ---- lines ---- */

static const struct live_line line = { .live = { .value = 3 << 20, .low = 2 << 20, .high = 6 << 20 },
	                               .share = 0.5,
	                               .blocks = 12345,
	                               .kept = 0.25,
	                               .growth = 1024,
	                               .growth_known = true,
	                               .verdict = 1,
	                               .samples = 17 };

static char *text_of_line(const struct live_line *l, size_t columns, size_t *used)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	*used = live_line_text(l, columns, false, out);
	fclose(out);
	assert_int_equal(*used, size);
	return text;
}

static void assert_line(const struct live_line *l, size_t columns, const char *words)
{
	size_t used;
	char *text = text_of_line(l, columns, &used), seen[200] = "";

	for (char *save = NULL, *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s ", word);
	assert_string_equal(seen, words);
	free(text);
}

static void test_lines_fit(void **state)
{
	struct live_line l = line;

	(void)state;
	assert_line(&l, 120, "3.00 MiB 100% 50.0% +1.00 KiB 12,345 25% 17 ");
	assert_line(&l, 80, "3.00 MiB 100% 50.0% +1.00 KiB 25% ");
	assert_line(&l, 60, "3.00 MiB 100% +1.00 KiB ");
	assert_line(&l, 40, "3.00 MiB ");
	assert_line(&l, 1, "3.00 MiB ");
	l.verdict = 0;
	l.kept = -1;
	l.live.high = 1e9;
	assert_line(&l, 120, "3.00 MiB >999% 50.0% ~1.00 KiB 12,345 - 17 ");
	l.growth = -2048;
	l.live = (struct estimate){ .value = 512, .low = 512, .high = 512, .exact = true };
	assert_line(&l, 120, "512 B exact 50.0% ~-2.00 KiB 12,345 - 17 ");
	l.verdict = -1;
	assert_line(&l, 50, "512 B -2.00 KiB ");
	l.growth_known = false;
	assert_line(&l, 50, "512 B - ");
}

/* What a screen is drawn of. */
struct scene {
	struct dump_builder b;
	struct live_heap heap;
	struct live_names names;
	struct live_rows rows;
	struct live_frame frame;
};

static void scene_of(struct scene *s, uint64_t private_latest_bytes)
{
	build(&s->b, true);
	dump_builder_header(&s->b)->private_latest_bytes = private_latest_bytes;
	assert_int_equal(live_heap_init(&s->heap, NULL), 0);
	live_names_init(&s->names, false);
	look(&s->heap, &s->b, false);
	assert_int_equal(live_rows_make(&s->rows, &s->heap, &s->names, LIVE_SORT_LIVE, live_rows_level(0.95, 0)), 0);
	s->frame = no_frame;
	s->frame.heap = &s->heap;
	s->frame.rows = &s->rows;
	s->frame.names = &s->names;
	s->frame.confidence = 0.95;
}

static void scene_done(struct scene *s)
{
	live_rows_done(&s->rows);
	live_names_done(&s->names);
	live_heap_done(&s->heap);
	dump_builder_done(&s->b);
}

/* The head has the private memory, by the kernel, and a bar for each of the last looks; in 80 columns, too. */
static void test_head_shows_memory_and_trend(void **state)
{
	static const double trend[] = { 8, 8, 8, 1, 2, 4, 4, 4 };
	struct scene s;
	char *text;
	size_t size;

	(void)state;
	scene_of(&s, 3 << 20);
	s.frame.trend = trend;
	s.frame.trend_count = 8;
	for (size_t columns = 80; columns <= 200; columns += 120) {
		FILE *out = open_memstream(&text, &size);
		live_screen_write(&s.frame, columns, 24, false, out);
		fclose(out);
		assert_non_null(strstr(text, columns == 80 ? ") \u2583\u2585\u2588\u2588\u2588  "
		                                           : ") \u2588\u2588\u2588\u2582\u2583\u2585\u2585\u2585  "));
		assert_non_null(strstr(text, "  private 3.00 MiB"));
		free(text);
	}
	scene_done(&s);
}

static char *drawn(const struct live_frame *frame, size_t lines)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	live_screen_write(frame, 80, lines, false, out);
	fclose(out);
	return text;
}

/* Of two stacks the rows, those with a text, and all frames of one. */
static void test_screen_shows_a_filter_and_a_whole_stack(void **state)
{
	struct scene s;
	bool left;

	(void)state;
	scene_of(&s, 0);
	s.frame.choice.chosen = 1;
	char *text = drawn(&s.frame, 24);
	assert_non_null(strstr(text, " 0x400100 < "));
	assert_non_null(strstr(text, ">0x400300 < "));
	free(text);
	s.frame.whole = live_rows_largest(&s.heap, &s.names, &s.rows.list[1]);
	s.frame.choice.whole = true;
	text = drawn(&s.frame, 24);
	assert_non_null(strstr(text, "0x400300\033[K\r\n0x"));
	assert_null(strstr(text, "0x400100\033"));
	free(text);
	s.frame.choice.line = 1; /* scrolled */
	text = drawn(&s.frame, 24);
	assert_null(strstr(text, "0x400300"));
	free(text);
	assert_int_equal(live_names_whole(&s.heap, s.frame.whole, 0, 0, NULL, NULL), s.frame.whole->place_count);
	live_rows_filter(&s.rows, &s.heap, &s.names, "0X400300");
	assert_int_equal(s.rows.count, 1);
	assert_ptr_equal(s.rows.list[0].figures, s.frame.whole);
	live_rows_filter(&s.rows, &s.heap, &s.names, "nothing");
	assert_int_equal(s.rows.count, 0);
	live_rows_done(&s.rows);
	live_names_set(&s.names, &s.heap, BY_MODULE); /* a sum of both: the larger one */
	assert_int_equal(live_names_group(&s.names, &s.heap, SIZE_MAX, &left), 0);
	assert_int_equal(live_rows_make(&s.rows, &s.heap, &s.names, LIVE_SORT_LIVE, live_rows_level(0.95, 1)), 0);
	assert_ptr_equal(live_rows_largest(&s.heap, &s.names, &s.rows.list[0]), stack_with(&s.heap, 0x400100));
	scene_done(&s);
}

/* Whatever the target is called, nothing acts on the terminal, and no line is longer than the screen. */
static void test_screen_is_inert(void **state)
{
	static const char name[] = "a\033[31mb\x07\x9b\n\xe2\x80\xae";
	struct dump_builder b;
	struct live_heap heap;
	struct live_names names;
	struct live_rows rows;

	(void)state;
	build(&b, true);
	dump_builder_module(&b, 1, 0, 0x400000, 0x500000, "/x/\033]0;title\x07\n", NULL, 0, 0);
	memcpy(dump_builder_header(&b)->command, name, sizeof name);
	assert_int_equal(live_heap_init(&heap, NULL), 0);
	live_names_init(&names, false);
	look(&heap, &b, false);
	assert_int_equal(live_rows_make(&rows, &heap, &names, LIVE_SORT_LIVE, live_rows_level(0.95, 0)), 0);
	for (size_t columns = 1; columns < 150; columns += 7) {
		struct live_frame frame = no_frame;
		char *text;
		size_t size, in_line = 0;
		FILE *out = open_memstream(&text, &size);
		frame.heap = &heap;
		frame.rows = &rows;
		frame.names = &names;
		frame.confidence = 0.95;
		live_screen_write(&frame, columns, 24, false, out);
		fclose(out);
		for (char *at = text; *at; at++) {
			if (!strncmp(at, "\033[H", 3) || !strncmp(at, "\033[K", 3) || !strncmp(at, "\033[J", 3)) {
				at += 2;
			} else if (*at == '\r' && at[1] == '\n') {
				in_line = 0;
				at++;
			} else {
				assert_in_range((unsigned char)*at, 0x20, 0x7e);
				assert_in_range(++in_line, 1, columns > 11 ? columns : 11);
			}
		}
		free(text);
	}
	live_rows_done(&rows);
	live_names_done(&names);
	live_heap_done(&heap);
	dump_builder_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growth_is_that_of_a_comparison),
		cmocka_unit_test(test_lines_of_python),
		cmocka_unit_test(test_window_moves),
		cmocka_unit_test(test_thinning_and_other_sessions_begin_anew),
		cmocka_unit_test(test_rows_are_sorted_and_tested),
		cmocka_unit_test(test_levels_add_up),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_choice_of_a_row),
		cmocka_unit_test(test_filter_is_typed),
		cmocka_unit_test(test_screen_shows_a_filter_and_a_whole_stack),
		cmocka_unit_test(test_lines_fit),
		cmocka_unit_test(test_head_shows_memory_and_trend),
		cmocka_unit_test(test_screen_is_inert),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
