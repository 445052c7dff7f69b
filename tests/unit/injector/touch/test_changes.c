/* SPDX-License-Identifier: MIT */
/* The table of changes, and that nothing is written without it. This process stands in as the target. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "touch/remote/target_write.h"

struct world {
	struct changes changes;
	struct target_writer writer;
};

static struct world open_world(void)
{
	struct world w = { .writer.fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC) };

	assert_true(w.writer.fd >= 0);
	return w;
}

static void close_world(struct world *w)
{
	target_writer_close(&w->writer);
	changes_free(&w->changes);
}

static void test_nothing_is_written_that_is_not_in_the_table(void **state)
{
	struct world w = open_world();
	volatile uint64_t word = 1;
	const uint64_t two = 2;
	struct err e;

	(void)state;
	w.writer.changes = &w.changes;
	for (unsigned kind = 0; kind < CHANGE_KINDS; kind++)
		assert_int_equal(target_write(&w.writer, kind, (uint64_t)&word, &two, sizeof two, &e), -EPERM);
	assert_int_equal(word, 1);
	changes_made(&w.changes, CHANGE_PAYLOAD);
	/* Bytes of the program are written with a row, or not at all. */
	changes_made(&w.changes, CHANGE_GOT_ENTRY);
	assert_int_equal(target_write(&w.writer, CHANGE_GOT_ENTRY, (uint64_t)&word, &two, sizeof two, &e), -EPERM);
	assert_int_equal(word, 1);
	assert_int_equal(target_write(&w.writer, CHANGE_PAYLOAD, (uint64_t)&word, &two, sizeof two, &e), 0);
	assert_int_equal(word, 2);
	changes_end(&w.changes, CHANGE_PAYLOAD, CHANGE_UNDONE);
	assert_int_equal(target_write(&w.writer, CHANGE_PAYLOAD, (uint64_t)&word, "", 1, &e), -EPERM);
	close_world(&w);
}

static void test_a_change_is_undone_backwards(void **state)
{
	struct world w = open_world();
	volatile uint64_t words[2] = { 10, 20 };
	const uint64_t old[2] = { 10, 20 }, new[2] = { 11, 21 };
	struct err e;

	(void)state;
	w.writer.changes = &w.changes;
	int first = target_writer_add_change(&w.writer, CHANGE_GOT_ENTRY, (uint64_t)&words[0], &old[0], &new[0], 8, &e);
	int jump = changes_add(&w.changes, CHANGE_JUMP, 0, "a", "b", 1, &e);
	int second =
		target_writer_add_change(&w.writer, CHANGE_GOT_ENTRY, (uint64_t)&words[1], &old[1], &new[1], 8, &e);
	assert_true(first >= 0 && jump >= 0 && second >= 0);
	assert_int_equal(words[0], 11);
	assert_int_equal(words[1], 21);
	assert_int_equal(w.changes.sums[CHANGE_GOT_ENTRY][CHANGE_MADE], 2);
	assert_int_equal(w.changes.sums[CHANGE_JUMP][CHANGE_LISTED], 1);
	assert_int_equal(changes_before(&w.changes, CHANGE_GOT_ENTRY, -1), second);
	assert_int_equal(changes_before(&w.changes, CHANGE_GOT_ENTRY, second), first);
	assert_int_equal(changes_before(&w.changes, CHANGE_GOT_ENTRY, first), -1);
	assert_int_equal(changes_next(&w.changes, CHANGE_GOT_ENTRY, first), second);
	assert_int_equal(target_writer_undo(&w.writer, second, NULL, &e), 0);
	assert_int_equal(words[1], 20);
	assert_int_equal(target_writer_undo(&w.writer, first, "ABCDEFGH", &e), 0);
	assert_memory_equal((const void *)words, "ABCDEFGH", 8);
	assert_int_equal(w.changes.sums[CHANGE_GOT_ENTRY][CHANGE_UNDONE], 2);
	assert_int_equal(w.changes.sums[CHANGE_GOT_ENTRY][CHANGE_MADE], 0);
	close_world(&w);
}

static void test_a_write_that_fails_is_no_change(void **state)
{
	struct world w = open_world();
	struct err e;

	(void)state;
	w.writer.changes = &w.changes;
	assert_true(target_writer_add_change(&w.writer, CHANGE_JUMP, 8, "a", "b", 1, &e) < 0);
	assert_int_equal(w.changes.sums[CHANGE_JUMP][CHANGE_MADE], 0);
	assert_int_equal(w.changes.sums[CHANGE_JUMP][CHANGE_LISTED], 1);
	assert_true(changes_add(&w.changes, CHANGE_JUMP, 8, "123456789", "123456789", 9, &e) < 0);
	assert_true(changes_add(&w.changes, CHANGE_PAYLOAD, 8, "1", "2", 1, &e) < 0);
	close_world(&w);
}

static void test_the_next_session_has_its_own_rows(void **state)
{
	struct changes c = { 0 };
	struct err e;

	(void)state;
	for (int i = 0; i < 100; i++) {
		int row = changes_add(&c, CHANGE_GOT_ENTRY, (uint64_t)i, "a", "b", 1, &e);
		assert_int_equal(row, i);
		changes_set(&c, row, i == 70 ? CHANGE_MADE : i % 2 ? CHANGE_UNDONE : CHANGE_GONE);
	}
	changes_made(&c, CHANGE_PADDING);
	changes_made(&c, CHANGE_REGISTERS);
	changes_thread_is_back(&c);
	assert_int_equal(c.sums[CHANGE_REGISTERS][CHANGE_UNDONE], 1);
	changes_forget(&c);
	assert_int_equal(c.count, 1);
	assert_int_equal(c.list[0].address, 70);
	assert_int_equal(c.sums[CHANGE_GOT_ENTRY][CHANGE_MADE], 1);
	assert_int_equal(c.sums[CHANGE_GOT_ENTRY][CHANGE_UNDONE], 0);
	assert_int_equal(c.sums[CHANGE_PADDING][CHANGE_MADE], 1);
	for (int i = 0; i < 100; i++)
		assert_int_equal(changes_add(&c, CHANGE_JUMP, 0, "a", "b", 1, &e), i + 1);
	changes_all_gone(&c);
	assert_int_equal(c.sums[CHANGE_GOT_ENTRY][CHANGE_GONE], 1);
	assert_int_equal(c.list[0].state, CHANGE_GONE);
	changes_free(&c);
}

/* Each kind says who undoes it: docs, the receipt and --doctor print that. */
/* What could not be adopted whole. */
static void test_rows_that_were_added_last_are_dropped(void **state)
{
	struct changes c = { 0 }, before;
	struct err e;

	(void)state;
	assert_int_equal(changes_add(&c, CHANGE_GOT_ENTRY, 8, "1", "2", 1, &e), 0);
	changes_set(&c, 0, CHANGE_MADE);
	before = c;
	assert_int_equal(changes_add(&c, CHANGE_GOT_ENTRY, 16, "1", "2", 1, &e), 1);
	assert_int_equal(changes_add(&c, CHANGE_PYTHON_WORD, 24, "1", "2", 1, &e), 2);
	changes_set(&c, 2, CHANGE_MADE);
	changes_keep(&c, 1);
	assert_int_equal(c.count, 1);
	assert_memory_equal(c.sums, before.sums, sizeof c.sums);
	assert_int_equal(changes_next(&c, CHANGE_PYTHON_WORD, -1), -1);
	assert_int_equal(changes_next(&c, CHANGE_GOT_ENTRY, -1), 0);
	changes_free(&c);
}

static void test_each_kind_says_who_undoes_it(void **state)
{
	(void)state;
	for (unsigned kind = 0; kind < CHANGE_KINDS; kind++)
		assert_true(*change_what(kind) && *change_undone(kind) && *change_dead(kind));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_written_that_is_not_in_the_table),
		cmocka_unit_test(test_a_change_is_undone_backwards),
		cmocka_unit_test(test_a_write_that_fails_is_no_change),
		cmocka_unit_test(test_the_next_session_has_its_own_rows),
		cmocka_unit_test(test_rows_that_were_added_last_are_dropped),
		cmocka_unit_test(test_each_kind_says_who_undoes_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
