/* SPDX-License-Identifier: MIT */
/* Code objects and Python frames of a dump: as they should be, and as no memattach writes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dump/dump_code.h"
#include "dump_tally.h"

static struct dump_code_copy copy; /* of the last read */

static int read_code(const struct dump_builder *b, uint32_t reference)
{
	struct opened o = open_built(b);
	int r = o.status ? o.status : dump_read_code(o.dump, reference, &copy);

	if (!o.status)
		assert_int_equal(dump_skipped(o.dump, DUMP_SKIP_code), r != 0);
	close_opened(&o);
	return r;
}

static struct dump_code *code_at(struct dump_builder *b, uint32_t reference)
{
	return dump_builder_at(b, (uint64_t)reference * DUMP_STACK_ALIGN);
}

static void test_name_file_and_lines(void **state)
{
	char name[DUMP_CODE_NAME_TEXT], file[DUMP_CODE_FILE_TEXT];
	struct dump_builder b;

	(void)state;
	dump_builder_init(&b, 1, 8, 8, 0);
	uint32_t code = dump_builder_code(&b, "caf\xe9", "/srv/a.py", 80, 10, 2);
	assert_int_equal(read_code(&b, code), 0);
	dump_code_name(&copy, name);
	dump_code_file(&copy, file);
	assert_string_equal(name, "caf\xc3\xa9");
	assert_string_equal(file, "/srv/a.py");
	assert_int_equal(dump_code_line(&copy, -1), 80); /* nothing has run yet */
	assert_int_equal(dump_code_line(&copy, 0), 80);
	assert_int_equal(dump_code_line(&copy, 3), 80);
	assert_int_equal(dump_code_line(&copy, 4), 81);
	assert_int_equal(dump_code_line(&copy, 38), 89);
	assert_int_equal(dump_code_line(&copy, 40), 0);

	code_at(&b, code)->flags |= DUMP_CODE_NAME_CUT | DUMP_CODE_FILE_CUT;
	code_at(&b, code)->first_line = -79;
	assert_int_equal(read_code(&b, code), 0);
	dump_code_name(&copy, name);
	dump_code_file(&copy, file);
	assert_string_equal(name, "caf\xc3\xa9\xe2\x80\xa6");
	assert_string_equal(file, "/srv/a.py\xe2\x80\xa6");
	assert_int_equal(dump_code_line(&copy, 0), 0); /* code that a program makes may have any line */
	dump_builder_done(&b);
}

static void test_wide_characters(void **state)
{
	static const uint16_t two[] = { 0x41, 0x20ac, 0xd800, 0 };
	static const uint32_t four[] = { 0x1f600, 0x110000 };
	char name[DUMP_CODE_NAME_TEXT], file[DUMP_CODE_FILE_TEXT];
	struct dump_builder b;

	(void)state;
	dump_builder_init(&b, 1, 8, 8, 0);
	uint32_t code = dump_builder_code(&b, "8 bytes.", "8 more..", 1, 1, 1);
	code_at(&b, code)->name_width = 2;
	code_at(&b, code)->file_width = 4;
	memcpy((char *)code_at(&b, code) + sizeof(struct dump_code), two, sizeof two);
	memcpy((char *)code_at(&b, code) + sizeof(struct dump_code) + sizeof two, four, sizeof four);
	assert_int_equal(read_code(&b, code), 0);
	dump_code_name(&copy, name);
	dump_code_file(&copy, file);
	assert_string_equal(name, "A\xe2\x82\xac\xef\xbf\xbd\xef\xbf\xbd");
	assert_string_equal(file, "\xf0\x9f\x98\x80\xef\xbf\xbd");
	dump_builder_done(&b);
}

static void test_longest_texts(void **state)
{
	static char long_name[DUMP_CODE_NAME_MAX + 1], long_file[DUMP_CODE_FILE_MAX + 1];
	char name[DUMP_CODE_NAME_TEXT], file[DUMP_CODE_FILE_TEXT];
	struct dump_builder b;

	(void)state;
	memset(long_name, 0xff, DUMP_CODE_NAME_MAX);
	memset(long_file, 0xff, DUMP_CODE_FILE_MAX);
	dump_builder_init(&b, 1, 8, 16, 0);
	uint32_t code = dump_builder_code(&b, long_name, long_file, 1, 1, 1);
	code_at(&b, code)->flags |= DUMP_CODE_NAME_CUT | DUMP_CODE_FILE_CUT;
	assert_int_equal(read_code(&b, code), 0);
	dump_code_name(&copy, name);
	dump_code_file(&copy, file);
	assert_int_equal(strlen(name), 2 * DUMP_CODE_NAME_MAX + 3);
	assert_int_equal(strlen(file), 2 * DUMP_CODE_FILE_MAX + 3);
	dump_builder_done(&b);
}

static void test_code_that_does_not_hold_together(void **state)
{
	struct dump_builder b;

	(void)state;
	dump_builder_init(&b, 1, 8, 8, 0);
	uint32_t code = dump_builder_code(&b, "name", "file", 1, 2, 1);
	uint32_t stack = dump_builder_stack(&b, (const uint64_t[]){ 1, 2 }, 2, 0);
	const struct dump_code good = *code_at(&b, code);
	struct dump_code bad[17];
	size_t n = 0;

#define BAD(member, value) (bad[n] = good, bad[n].member = (value), n++)
	BAD(hash, 0);
	BAD(data_bytes, good.data_bytes + 1);
	BAD(data_bytes, UINT32_MAX);
	BAD(flags, 0);
	BAD(flags, DUMP_STACK_CODE | 1u << 8);
	BAD(flags, DUMP_STACK_CODE | DUMP_STACK_PYTHON_FLAGS(1));
	BAD(table_bytes, UINT32_MAX - 7);
	BAD(table_bytes, good.table_bytes - 1);
	BAD(name_bytes, UINT16_MAX);
	BAD(name_bytes, 3);
	BAD(file_bytes, DUMP_CODE_FILE_MAX + 1);
	BAD(name_width, 0);
	BAD(name_width, 3);
	BAD(name_width, 8);
	BAD(file_width, 255);
	BAD(lines, DUMP_LINES_LOCATIONS + 1);
	bad[n] = good; /* it holds together, but there is not so much of the file */
	bad[n].table_bytes = DUMP_CODE_TABLE_MAX;
	bad[n].data_bytes = good.data_bytes - good.table_bytes + DUMP_CODE_TABLE_MAX;
	n++;
#undef BAD
	assert_int_equal(n, sizeof bad / sizeof bad[0]);
	for (size_t i = 0; i < n; i++) {
		*code_at(&b, code) = bad[i];
		assert_int_equal(read_code(&b, code), -EPROTO);
	}
	*code_at(&b, code) = good;
	assert_int_equal(read_code(&b, code), 0);
	static const uint32_t references[] = { 0, 1, UINT32_MAX, 1 << 20 };
	for (size_t i = 0; i < sizeof references / sizeof references[0]; i++)
		assert_int_equal(read_code(&b, references[i]), -EPROTO);
	assert_int_equal(read_code(&b, stack), -EPROTO);
	dump_builder_done(&b);
}

static void test_python_frames_follow_native_ones(void **state)
{
	static const uint64_t native[] = { 11, 12, 13 }, python[] = { 21, 22 };
	struct dump_stack_copy stack;
	struct dump_builder b;

	(void)state;
	dump_builder_init(&b, 1, 8, 8, 0);
	dump_builder_header(&b)->python_version = 0x030b02f0;
	uint32_t code = dump_builder_code(&b, "f", "f.py", 1, 2, 1);
	uint32_t s = dump_builder_python_stack(&b, native, 3, python, 2, DUMP_STACK_PYTHON_DEEP);
	struct opened o = open_built(&b);
	assert_int_equal(dump_read_stack(o.dump, s, &stack), 0);
	assert_int_equal(stack.stack.frame_count, 3);
	assert_int_equal(dump_python_count(&stack), 2);
	assert_memory_equal(stack.frames, native, sizeof native);
	assert_memory_equal(dump_python_frames(&stack), python, sizeof python);
	assert_int_equal(dump_read_stack(o.dump, code, &stack), -EPROTO);
	assert_int_equal(dump_skipped(o.dump, DUMP_SKIP_stack), 1);
	close_opened(&o);
	o = open_built(&b);
	assert_int_equal(read_all(o.dump).stacks, 1); /* the code is passed over, and nothing is damaged */
	assert_true(dump_complete(o.dump));
	close_opened(&o);

	/* More of them than there may be, or than the file has. */
	struct dump_stack *record = dump_builder_at(&b, (uint64_t)s * DUMP_STACK_ALIGN);
	static const uint32_t counts[] = { DUMP_PYTHON_FRAMES_MAX + 1, UINT16_MAX };
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
		record->flags = DUMP_STACK_PYTHON_FLAGS(counts[i]);
		o = open_built(&b);
		assert_int_equal(dump_read_stack(o.dump, s, &stack), -EPROTO);
		close_opened(&o);
	}
	record->flags = DUMP_STACK_PYTHON_FLAGS(2);
	o = open_cut(&b, (size_t)s * DUMP_STACK_ALIGN + sizeof *record + 4 * sizeof native[0]);
	assert_int_equal(dump_read_stack(o.dump, s, &stack), -EPROTO);
	close_opened(&o);
	dump_builder_done(&b);
}

/* Whatever the bytes are, what is read has an end and its texts have room. */
static void test_damaged_code(void **state)
{
	char name[DUMP_CODE_NAME_TEXT], file[DUMP_CODE_FILE_TEXT];
	struct dump_builder b;
	unsigned read = 0;

	(void)state;
	dump_builder_init(&b, 1, 8, 8, 0);
	uint32_t code = dump_builder_code(&b, "some name", "some file", 7, 20, 3);
	const size_t bytes = sizeof(struct dump_code) + code_at(&b, code)->data_bytes;
	uint8_t *at = dump_builder_at(&b, (uint64_t)code * DUMP_STACK_ALIGN);
	srand(7);
	for (int i = 0; i < 3000; i++) {
		size_t k = (size_t)rand() % bytes;
		uint8_t before = at[k];
		at[k] = (uint8_t)rand();
		if (!read_code(&b, code)) {
			read++;
			dump_code_name(&copy, name);
			dump_code_file(&copy, file);
			for (int32_t offset = -2; offset < 300; offset += 7)
				assert_true(dump_code_line(&copy, offset) >= 0);
		}
		at[k] = before;
	}
	assert_true(read > 100 && read < 3000);
	dump_builder_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_name_file_and_lines),
		cmocka_unit_test(test_wide_characters),
		cmocka_unit_test(test_longest_texts),
		cmocka_unit_test(test_code_that_does_not_hold_together),
		cmocka_unit_test(test_python_frames_follow_native_ones),
		cmocka_unit_test(test_damaged_code),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
