/* SPDX-License-Identifier: MIT */
/* What a process may say of Java that no JVM does. This program's own memory stands in for the process. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"
#include "java/java_loaded.h"
#include "java/java_method.h"
#include "java/java_stack.h"
#include "java_fake.h"

#define CODE_END 64
#define FAR 0xfffffffeu /* as the difference of lines: the largest */

#define FIELD JAVA_FAKE_FIELD

/* ---- a method ---- */

static struct java_fake fake;

static int line_of(int32_t bci, int32_t *line)
{
	struct java_view v = java_fake_view(&fake);
	struct java_place place;
	struct java_method m;
	struct err e;

	int rc = java_method_read(&v, java_fake_at(&fake.method), bci, &m, &e);
	rc = rc ?: java_method_place(&v, &m, bci, &place, &e);
	*line = rc ? 0 : place.line;
	return rc;
}

/* Each difference is one that a table may have; the sum has no room in a line. */
static void test_java_lines_that_are_too_far_are_refused(void **state)
{
	int32_t line;

	(void)state;
	java_fake_make(&fake, "Far");
	uint8_t *at = fake.constant.lines;
	*at++ = 0xff;
	at = java_fake_number(java_fake_number(at, 0), FAR - 14);
	*at = 0;
	assert_int_equal(line_of(0, &line), 0);
	assert_int_equal(line, INT32_MAX - 7);
	*at++ = 1 << 3 | 7;
	assert_int_equal(line_of(1, &line), 0);
	assert_int_equal(line, INT32_MAX);
	*at++ = 1 << 3 | 1;
	assert_int_equal(line_of(2, &line), -EINVAL);
}

/* ---- where compiled code is ---- */

static struct fake_code {
	int32_t pcs[2]; /* from where to where, from the scopes on */
	uint32_t scopes_at, methods_at;
	int32_t table[3][2];
	uint8_t scope[16];
	uint64_t method;
} fake_code;

/* The number of a bytecode for which there is no room. */
static void test_java_bytecodes_that_are_too_far_are_none(void **state)
{
	const uint64_t start = java_fake_at(&fake_code);
	const struct java_code code = { .address = start, .start = start, .end = start + CODE_END };
	struct java_view v = { .memory = { .pid = getpid(), .mem_fd = -1 } };
	struct java_point points[JAVA_INLINED_MAX];
	uint32_t count;
	struct err e;

	(void)state;
	v.s.compiled_pcs.at = offsetof(struct fake_code, pcs);
	v.s.compiled_scopes = FIELD(struct fake_code, scopes_at);
	v.s.compiled_metadata = FIELD(struct fake_code, methods_at);
	v.s.bytes.pc_desc = 8;
	fake_code = (struct fake_code){ .pcs = { offsetof(struct fake_code, table), offsetof(struct fake_code, scope) },
		                        .scopes_at = offsetof(struct fake_code, scope),
		                        .methods_at = offsetof(struct fake_code, method),
		                        .table = { { -1, 0 }, { 4, 1 }, { CODE_END, 0 } },
		                        .method = 4711 };
	java_fake_number(java_fake_number(java_fake_number(fake_code.scope + 1, 0), 1), 0x80000000u);
	assert_int_equal(java_points_read(&v, &code, start + 4, points, &count, &e), 0);
	assert_int_equal(count, 1);
	assert_int_equal(points[0].method, 4711);
	assert_int_equal(points[0].bci, INT32_MAX);
	for (unsigned i = 0; i < 3; i += 2) { /* where the table was, something else is */
		const int32_t was = fake_code.table[i][0];
		fake_code.table[i][0] = 0;
		assert_int_equal(java_points_read(&v, &code, start + 4, points, &count, &e), -EINVAL);
		fake_code.table[i][0] = was;
	}
	fake_code.table[2][0] = CODE_END + 2;
	assert_int_equal(java_points_read(&v, &code, start + 4, points, &count, &e), -EINVAL);
}

/* ---- which classes are loaded ---- */

static struct fake_loader {
	uint64_t next, classes;
} loader;
static struct fake_class {
	uint64_t next, loader;
} classes[4];
static uint64_t head;

static struct java_view loaded_view(void)
{
	struct java_view v = { .memory = { .pid = getpid(), .mem_fd = -1 } };

	v.s.loaders = (struct java_field){ java_fake_at(&head), 8 };
	v.s.loader_next = FIELD(struct fake_loader, next);
	v.s.loader_classes = FIELD(struct fake_loader, classes);
	v.s.class_next = FIELD(struct fake_class, next);
	v.s.class_loader = FIELD(struct fake_class, loader);
	head = java_fake_at(&loader);
	loader = (struct fake_loader){ .classes = java_fake_at(&classes[0]) };
	for (size_t i = 0; i < 4; i++)
		classes[i] = (struct fake_class){ i < 3 ? java_fake_at(&classes[i + 1]) : 0, java_fake_at(&loader) };
	return v;
}

/* A list that is being changed is read again from its begin, and believed once it has an end. */
static void test_java_loaded_reads_a_list_again(void **state)
{
	struct java_view v = loaded_view();
	struct java_loaded l;
	bool has = false;
	struct err e;

	(void)state;
	assert_int_equal(java_loaded_read(&l, &v, &e), 0);
	classes[2].next = 8; /* cannot be read */
	assert_int_equal(java_loaded_has(&l, &v, java_fake_at(&classes[3]), &has, &e), -EFAULT);
	classes[2].next = java_fake_at(&classes[1]);
	assert_int_equal(java_loaded_has(&l, &v, java_fake_at(&classes[3]), &has, &e), -EINVAL);
	classes[2].next = java_fake_at(&classes[3]);
	assert_int_equal(java_loaded_has(&l, &v, java_fake_at(&classes[3]), &has, &e), 0);
	assert_true(has);
	java_loaded_done(&l);
}

/* ---- threads ---- */

static struct fake_thread {
	uint64_t native, stack_end, stack_bytes, next;
} first, second;
static struct fake_native {
	uint32_t tid;
} natives[2] = { { 71 }, { 72 } };
static uint64_t first_thread;

/* Before JDK 12 each thread leads to the next one; a list that comes back to itself is too long. */
static void test_java_threads_that_lead_to_each_other(void **state)
{
	struct java_view v = { .memory = { .pid = getpid(), .mem_fd = -1 } };
	struct java_thread *list = NULL;
	size_t count = 0;
	struct err e;

	(void)state;
	v.s.first_thread = (struct java_field){ java_fake_at(&first_thread), sizeof first_thread };
	v.s.thread_next = FIELD(struct fake_thread, next);
	v.s.thread_native = FIELD(struct fake_thread, native);
	v.s.thread_stack_base = FIELD(struct fake_thread, stack_end);
	v.s.thread_stack_bytes = FIELD(struct fake_thread, stack_bytes);
	v.s.native_id = FIELD(struct fake_native, tid);
	assert_int_equal(java_threads_read(&v, &list, &count, &e), 0);
	assert_int_equal(count, 0);
	assert_null(list);
	first_thread = java_fake_at(&first);
	first = (struct fake_thread){ java_fake_at(&natives[0]), 9000, 1000, java_fake_at(&second) };
	second = (struct fake_thread){ java_fake_at(&natives[1]), 7000, 2000, 0 };
	assert_int_equal(java_threads_read(&v, &list, &count, &e), 0);
	assert_int_equal(count, 2);
	assert_int_equal(list[0].tid, 71);
	assert_int_equal(list[1].tid, 72);
	assert_int_equal(list[1].stack, 5000);
	free(list);
	second.next = first_thread;
	assert_int_equal(java_threads_read(&v, &list, &count, &e), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_java_lines_that_are_too_far_are_refused),
		cmocka_unit_test(test_java_bytecodes_that_are_too_far_are_none),
		cmocka_unit_test(test_java_loaded_reads_a_list_again),
		cmocka_unit_test(test_java_threads_that_lead_to_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
