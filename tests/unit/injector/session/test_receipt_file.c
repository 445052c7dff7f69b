/* SPDX-License-Identifier: MIT */
/* Strings of a receipt are valid JSON whatever bytes they are made of; lines for a terminal are printable. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "session/receipt.h"
#include "host/say.h"

#define ROUNDS 20000

/* As RFC 8259 wants a string: UTF-8, nothing below space, a quote only at the ends, known escapes. */
static bool is_string(const char *text, size_t length)
{
	const unsigned char *s = (const unsigned char *)text + 1, *end = (const unsigned char *)text + length - 1;

	if (length < 2 || text[0] != '"' || *end != '"')
		return false;
	while (s < end) {
		size_t n = printable_sequence(s);
		if (n == 0 || *s < 0x20 || *s == '"')
			return false;
		if (*s == '\\') {
			if (s[1] == 'u' && strspn((const char *)s + 2, "0123456789abcdef") >= 4)
				n = 6;
			else if (s[1] == '"' || s[1] == '\\')
				n = 2;
			else
				return false;
		}
		s += n;
	}
	return s == end;
}

static char *written(const char *text, size_t length)
{
	char *out = NULL;
	size_t bytes;
	FILE *f = open_memstream(&out, &bytes);

	assert_non_null(f);
	receipt_file_string(f, text, length);
	assert_int_equal(fclose(f), 0);
	return out;
}

static void test_receipt_file_string_is_json_for_all_bytes(void **state)
{
	(void)state;
	srandom(1);
	for (int round = 0; round < ROUNDS; round++) {
		char text[20];
		size_t length = (size_t)random() % sizeof text;
		for (size_t i = 0; i < length; i++)
			text[i] = (char)(random() % 3 ? random() % 255 + 1
			                              : "\"\\\xc3\xa4\xe2\x82\xac\xf0\x9f"[random() % 9]);
		char *out = written(text, length);
		assert_true(is_string(out, strlen(out)));
		free(out);
	}
	char *out = written("a\"\\\n\xff\xc3\xa4 and more", 7);
	assert_string_equal(out, "\"a\\\"\\\\\\u000a\\ufffd\xc3\xa4\"");
	free(out);
}

static char *formatted(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	char *text = say_format(format, ap);
	va_end(ap);
	return text;
}

static void test_say_format_makes_one_printable_line(void **state)
{
	char *text = formatted("%s of %d",
	                       "\033[2J\n\xff"
	                       "lib\xc3\xa4",
	                       7);

	(void)state;
	assert_string_equal(text, "?[2J??lib\xc3\xa4 of 7");
	free(text);
}

static void test_receipt_file_open_takes_regular_files_only(void **state)
{
	char path[] = "/tmp/receipt-XXXXXX", link[sizeof path + 1];
	FILE *f = NULL;
	struct err e;
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(write(fd, "old", 3), 3);
	snprintf(link, sizeof link, "%sl", path);
	assert_int_equal(symlink(path, link), 0);
	assert_int_equal(receipt_file_open(&f, link, &e), -ELOOP);
	assert_int_equal(receipt_file_open(&f, "/dev/full", &e), -EINVAL);
	assert_int_equal(lseek(fd, 0, SEEK_END), 3);
	assert_int_equal(receipt_file_open(&f, path, &e), 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), 0);
	assert_int_equal(receipt_file_close(f, path, &e), 0);
	f = fopen("/dev/full", "w");
	assert_non_null(f);
	fputs("x", f);
	assert_int_equal(receipt_file_close(f, "/dev/full", &e), -ENOSPC);
	close(fd);
	unlink(link);
	unlink(path);
}

/* The path of a residue is made printable when it is added; one that was not, as that of a later caller may be. */
static void test_receipt_with_paths_that_are_no_utf8_is_json(void **state)
{
	static const char want[] = "\"clean\":false,\"residue\":[\"mapping /tmp/caf?.so\"],"
				   "\"notes\":[\"/tmp/caf\\ufffd\\u009b.so\",\"/tmp/caf\xc3\xa9.so\"]}\n";
	static struct session s;
	char path[] = "/tmp/receipt-XXXXXX", text[1000] = "";
	int fd = mkstemp(path);
	struct err e;

	(void)state;
	s.options.receipt = path;
	session_add_residue(&s, "mapping %s", "/tmp/caf\xe9.so");
	s.outcome.notes = strdup("/tmp/caf\xe9\xc2\x9b.so\n/tmp/caf\xc3\xa9.so\n");
	assert_int_equal(receipt_write(&s, &e), 0);
	assert_true(read(fd, text, sizeof text - 1) > (ssize_t)sizeof want);
	assert_non_null(strstr(text, want));
	free(s.outcome.residue);
	free(s.outcome.notes);
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_receipt_file_string_is_json_for_all_bytes),
		cmocka_unit_test(test_say_format_makes_one_printable_line),
		cmocka_unit_test(test_receipt_file_open_takes_regular_files_only),
		cmocka_unit_test(test_receipt_with_paths_that_are_no_utf8_is_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
