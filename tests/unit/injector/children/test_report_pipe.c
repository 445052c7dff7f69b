/* SPDX-License-Identifier: MIT */
/* What goes through the pipe of a child that writes a report: all of it, no more than it may, and without waiting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "children/report_pipe.h"

#define BYTES 200000u

static char data[BYTES];
static struct report_pipe report;

static void open_it(int out, uint64_t limit)
{
	struct err e;

	for (unsigned i = 0; i < BYTES; i++)
		data[i] = (char)(i * 7 + i / 256);
	assert_int_equal(report_pipe_open(&report, out, limit, "", &e), 0);
	assert_int_equal(write(report.into, data, BYTES), BYTES);
	report_pipe_keep_end(&report);
}

static int move_all(void)
{
	struct err e;
	int rc;

	while ((rc = report_pipe_move(&report, &e)) > 0)
		;
	return rc;
}

static void test_report_pipe_takes_all(void **state)
{
	(void)state;
	static char there[BYTES];
	int file = memfd_create("report", MFD_CLOEXEC);

	open_it(file, BYTES);
	assert_int_equal(move_all(), 0);
	assert_true(report_pipe_is_empty(&report));
	assert_int_equal(report.from, -1);
	assert_int_equal(pread(file, there, BYTES, 0), BYTES);
	assert_memory_equal(there, data, BYTES);
	report_pipe_close(&report);
	close(file);
}

static void test_report_pipe_takes_no_more_than_it_may(void **state)
{
	(void)state;
	struct stat st;
	int file = memfd_create("report", MFD_CLOEXEC);

	open_it(file, BYTES - 1);
	assert_int_equal(move_all(), -EFBIG);
	assert_int_equal(fstat(file, &st), 0);
	assert_true(st.st_size < BYTES);
	report_pipe_close(&report);
	close(file);
}

/* Into a pipe that nobody reads for now, and then nobody any more. */
static void test_report_pipe_waits_for_nobody(void **state)
{
	(void)state;
	static char there[BYTES];
	int ends[2];
	size_t got = 0;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	open_it(ends[1], 10 * BYTES);
	while (got < BYTES) {
		assert_int_equal(move_all(), 0);
		ssize_t n = read(ends[0], there + got, sizeof there - got);
		assert_true(n > 0);
		got += (size_t)n;
	}
	assert_memory_equal(there, data, BYTES);
	report_pipe_close(&report);
	open_it(ends[1], BYTES);
	close(ends[0]);
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(move_all(), -EPIPE);
	report_pipe_close(&report);
	close(ends[1]);
}

/* Who still holds the other end keeps nobody waiting. */
static void test_report_pipe_is_read_while_somebody_holds_it(void **state)
{
	(void)state;
	struct err e;
	int file = memfd_create("report", MFD_CLOEXEC);

	assert_int_equal(report_pipe_open(&report, file, BYTES, "", &e), 0);
	assert_int_equal(report_pipe_move(&report, &e), 0);
	assert_int_equal(write(report.into, "x", 1), 1);
	assert_int_equal(move_all(), 0);
	assert_int_equal(lseek(file, 0, SEEK_END), 1);
	assert_true(report_pipe_is_empty(&report));
	report_pipe_close(&report);
	close(file);
}

/* Also where it comes in pieces; a report that ends before is none that could do harm. */
static void test_report_pipe_insists_on_the_beginning(void **state)
{
	static const struct {
		const char *pieces[3];
		int result;
		const char *out;
	} tries[] = { { { "<head>", "<data>", "" }, 0, "<head><data>" },
		      { { "<he", "ad>", "x" }, 0, "<head>x" },
		      { { "<he", "", "" }, 0, "<he" },
		      { { "<script>", "<head>", "" }, -EPROTO, "" },
		      { { "<he", "<script>", "" }, -EPROTO, "<he" } };

	(void)state;
	for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
		char there[40] = "";
		struct err e;
		int file = memfd_create("report", MFD_CLOEXEC), rc = 0;
		assert_int_equal(report_pipe_open(&report, file, BYTES, "<head>", &e), 0);
		for (size_t k = 0; k < 3 && rc == 0; k++) {
			const char *piece = tries[i].pieces[k];
			assert_int_equal(write(report.into, piece, strlen(piece)), strlen(piece));
			rc = move_all();
		}
		assert_int_equal(rc, tries[i].result);
		assert_true(pread(file, there, sizeof there - 1, 0) >= 0);
		assert_string_equal(there, tries[i].out);
		report_pipe_close(&report);
		close(file);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_report_pipe_takes_all),
		cmocka_unit_test(test_report_pipe_takes_no_more_than_it_may),
		cmocka_unit_test(test_report_pipe_waits_for_nobody),
		cmocka_unit_test(test_report_pipe_insists_on_the_beginning),
		cmocka_unit_test(test_report_pipe_is_read_while_somebody_holds_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
