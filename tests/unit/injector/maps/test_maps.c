/* SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "maps/maps_at.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char sample[] =
	"00400000-00401000 r-xp 00000000 fe:01 1234                               /usr/bin/a b\n"
	"00600000-00601000 rw-p 00001000 fe:01 1234                               /usr/bin/a b\n"
	"7f0000000000-7f0000002000 r--s 00003000 00:05 77                         /memfd:x (deleted)\n"
	"7f0000002000-7f0000003000 ---p 00000000 00:00 0 \n"
	"7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]\n"
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n";

static int parse(struct maps *m, const char *text)
{
	struct err e;

	return maps_parse(m, text, strlen(text), &e);
}

static void test_maps_parse_reads_all_fields(void **state)
{
	struct maps m;

	(void)state;
	assert_int_equal(parse(&m, sample), 0);
	assert_int_equal(m.count, 6);
	assert_string_equal(m.list[0].path, "/usr/bin/a b");
	assert_int_equal(m.list[0].prot, PROT_READ | PROT_EXEC);
	assert_int_equal(m.list[0].dev_major, 0xfe);
	assert_int_equal(m.list[0].inode, 1234);
	assert_false(m.list[0].deleted);
	assert_string_equal(m.list[2].path, "/memfd:x");
	assert_true(m.list[2].deleted && m.list[2].shared);
	assert_int_equal(m.list[2].offset, 0x3000);
	assert_string_equal(m.list[3].path, "");
	assert_int_equal(m.list[3].prot, 0);
	assert_true(mapping_same_file(&m.list[0], &m.list[1]));
	assert_false(mapping_same_file(&m.list[3], &m.list[4]));
	maps_free(&m);
}

static void test_maps_parse_undoes_escapes(void **state)
{
	struct maps m;

	(void)state;
	assert_int_equal(parse(&m, "1000-2000 r--p 0 0:1 5 /a\\012b (deleted)\n"), 0);
	assert_string_equal(m.list[0].path, "/a\nb");
	assert_true(m.list[0].deleted);
	maps_free(&m);
}

static void test_maps_parse_refuses_nonsense(void **state)
{
	static const char *const bad[] = {
		"x",
		"\n",
		"1000-",
		"1000-2000",
		"2000-1000 r--p 0 0:0 0\n",
		"1000-1000 r--p 0 0:0 0\n",
		"1000-2000 rzzp 0 0:0 0\n",
		"1000-2000 r--p 0 0:0\n",
		"1000-2000 r--p 0 00 0\n",
		"1000-2000 r--p 0 0:0 0x\n",
		"11111111111111111-2 r--p 0 0:0 0\n",
		"1000-2000 r--p 0 0:0 99999999999999999999999\n",
		"1000-2000 r--p 0 fffffffff:0 0\n",
		"2000-3000 r--p 0 0:0 0\n1000-2000 r--p 0 0:0 0\n",
		"1000-3000 r--p 0 0:0 0\n2000-4000 r--p 0 0:0 0\n",
	};
	struct maps m = { 0 };
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(parse(&m, bad[i]), -EINVAL);
	assert_int_equal(maps_parse(&m, "1000-2000 r--p 0 0:0 0 a\0b\n", 27, &e), -EINVAL);
	assert_null(m.list);
}

/* Every prefix of good text parses or is refused, and never more. */
static void test_maps_parse_survives_truncation(void **state)
{
	(void)state;
	for (size_t n = 0; n < sizeof sample; n++) {
		char *copy = malloc(n + 1);
		struct maps m;
		struct err e;
		assert_non_null(copy);
		memcpy(copy, sample, n);
		if (maps_parse(&m, copy, n, &e) == 0) {
			assert_true(m.count <= 6);
			maps_free(&m);
		}
		free(copy);
	}
}

static void test_maps_find_knows_borders(void **state)
{
	struct maps m;

	(void)state;
	assert_int_equal(parse(&m, sample), 0);
	assert_null(maps_find(&m, 0x3fffff));
	assert_ptr_equal(maps_find(&m, 0x400000), &m.list[0]);
	assert_ptr_equal(maps_find(&m, 0x400fff), &m.list[0]);
	assert_null(maps_find(&m, 0x401000));
	assert_ptr_equal(maps_find(&m, 0x7f0000002000), &m.list[3]);
	assert_null(maps_find(&m, UINT64_MAX));
	maps_free(&m);
}

struct changes {
	size_t count;
	char text[4][200];
};

static void on_change(void *context, const struct maps_change *change)
{
	struct changes *c = context;

	if (c->count < 4)
		maps_change_format(change, c->text[c->count], sizeof c->text[0]);
	c->count++;
}

static void expect_diff(const char *before, const char *after, size_t count, const char *first)
{
	struct maps a, b;
	struct changes c = { 0 };

	assert_int_equal(parse(&a, before), 0);
	assert_int_equal(parse(&b, after), 0);
	assert_int_equal(maps_diff(&a, &b, on_change, &c), count);
	assert_int_equal(c.count, count);
	if (first)
		assert_string_equal(c.text[0], first);
	maps_free(&a);
	maps_free(&b);
}

static void test_maps_diff_tells_what_changed(void **state)
{
	(void)state;
	expect_diff(sample, sample, 0, NULL);
	expect_diff("", "", 0, NULL);
	expect_diff("", "1000-2000 rw-p 0 0:0 0\n", 1, "1000-2000 rw-p anonymous (new)");
	expect_diff("1000-2000 rw-p 0 0:0 0\n", "", 1, "1000-2000 rw-p anonymous (gone)");
	expect_diff("1000-4000 r--p 0 0:1 5 /x\n",
	            "1000-2000 r--p 0 0:1 5 /x\n2000-3000 rw-p 1000 0:1 5 /x\n3000-4000 r--p 2000 0:1 5 /x\n", 1,
	            "2000-3000 rw-p /x (was r--p /x)");
	/* Split or merged alone is no change. */
	expect_diff("1000-4000 r--p 0 0:1 5 /x\n", "1000-2000 r--p 0 0:1 5 /x\n2000-4000 r--p 1000 0:1 5 /x\n", 0,
	            NULL);
	/* Another place in the file is one. */
	expect_diff("1000-2000 r--p 0 0:1 5 /x\n", "1000-2000 r--p 1000 0:1 5 /x\n", 1, NULL);
	/* Two gaps are two changes. */
	expect_diff("2000-3000 r--p 0 0:0 0\n",
	            "1000-2000 rw-p 0 0:0 0\n2000-3000 r--p 0 0:0 0\n3000-4000 rw-p 0 0:0 0\n", 2, NULL);
}

static void test_maps_read_of_self(void **state)
{
	struct maps m;
	struct err e;

	(void)state;
	assert_int_equal(maps_read(&m, "/proc/self/maps", &e), 0);
	const struct mapping *code = maps_find(&m, (uint64_t)(uintptr_t)&test_maps_read_of_self);
	assert_non_null(code);
	assert_true(code->prot & PROT_EXEC);
	maps_free(&m);
	assert_int_equal(maps_read(&m, "/proc/self/task/1/no", &e), -ESRCH);
}

/* The answers for single addresses are those of the whole list. */
static void test_maps_read_at_tells_what_the_list_tells(void **state)
{
	static int variable = 1;
	void *shared = mmap(NULL, 8192, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	void *closed = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *gone = mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct maps some, all;
	struct err e;

	(void)state;
	assert_true(shared != MAP_FAILED && closed != MAP_FAILED && gone != MAP_FAILED);
	assert_int_equal(munmap((char *)gone + 4096, 4096), 0);
	const uint64_t at[] = {
		(uint64_t)&test_maps_read_at_tells_what_the_list_tells,
		(uint64_t)&variable,
		(uint64_t)shared + 4096,
		(uint64_t)sample,
		(uint64_t)closed,
		(uint64_t)gone + 4096 + 8,
		(uint64_t)&all,
		(uint64_t)&strlen,
		(uint64_t)&variable + 1,
		0,
	};
	const size_t count = sizeof at / sizeof at[0];
	assert_int_equal(maps_at_read(&some, "/proc/self/maps", at, count, &e), 0);
	assert_int_equal(maps_read(&all, "/proc/self/maps", &e), 0);
	for (size_t i = 0; i < count; i++) {
		const struct mapping *a = maps_find(&some, at[i]), *b = maps_find(&all, at[i]);
		assert_int_equal(a != NULL, b != NULL);
		assert_int_equal(!a, at[i] == 0 || at[i] == (uint64_t)gone + 4096 + 8);
		if (!a)
			continue;
		assert_true(a->start <= at[i] && at[i] < a->end);
		assert_int_equal(a->prot, b->prot);
		assert_int_equal(a->shared, b->shared);
		assert_int_equal(a->inode, b->inode);
		assert_true(!a->inode || (mapping_same_file(a, b) && a->offset - a->start == b->offset - b->start));
	}
	for (size_t i = 1; i < some.count; i++)
		assert_true(some.list[i - 1].end <= some.list[i].start);
	maps_free(&some);
	maps_free(&all);
	munmap(shared, 8192);
	munmap(closed, 4096);
	munmap(gone, 3 * 4096);
}

/* As an older kernel has it: the file answers no questions. */
static void test_maps_read_at_reads_the_list_where_nothing_answers(void **state)
{
	char path[] = "/tmp/memattach-maps-XXXXXX";
	const uint64_t at = 0x600010;
	struct maps m;
	struct err e;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, sample, strlen(sample)), (ssize_t)strlen(sample));
	close(fd);
	int rc = maps_at_read(&m, path, &at, 1, &e);
	unlink(path);
	assert_int_equal(rc, 0);
	assert_int_equal(maps_find(&m, at)->offset, 0x1000);
	maps_free(&m);
	assert_int_equal(maps_at_read(&m, "/proc/self/task/1/no", &at, 1, &e), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_maps_parse_reads_all_fields),
		cmocka_unit_test(test_maps_parse_undoes_escapes),
		cmocka_unit_test(test_maps_parse_refuses_nonsense),
		cmocka_unit_test(test_maps_parse_survives_truncation),
		cmocka_unit_test(test_maps_find_knows_borders),
		cmocka_unit_test(test_maps_diff_tells_what_changed),
		cmocka_unit_test(test_maps_read_of_self),
		cmocka_unit_test(test_maps_read_at_tells_what_the_list_tells),
		cmocka_unit_test(test_maps_read_at_reads_the_list_where_nothing_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
