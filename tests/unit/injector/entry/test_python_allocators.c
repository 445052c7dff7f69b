/* SPDX-License-Identifier: MIT */
/*
 * CPython's table of allocators, in this program itself: functions with the names that an interpreter exports, in the
 * ways in which compilers make them, and rows that hold what they should, or not.
 */
#include "fixture.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "entry/python_allocators.h"
#include "arch/word_references.h"

struct row {
	uint64_t words[ROW_WORDS];
};

/* Used by the code below. */
__attribute__((visibility("hidden"))) struct row raw_row, mem_row, object_row, another_row;
struct row *row_pointer = &raw_row; /* as a GOT entry */

#define FUNCTION(name, body)                                                                                           \
	__asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" body "\n.size " #name              \
	        ", . - " #name "\n")

#ifdef __x86_64__
#include "python_functions_x86_64.h"
#else
#include "python_functions_aarch64.h"
#endif
extern char pool_malloc[], pool_calloc[], pool_realloc[], pool_free[], without_limit[];

static struct view view;

static void fill_rows(void)
{
	const struct row pool = { { 0, (uint64_t)pool_malloc, (uint64_t)pool_calloc, (uint64_t)pool_realloc,
		                    (uint64_t)pool_free } };

	raw_row = (struct row){ { 0, (uint64_t)pool_calloc, 2, 3, 4 } };
	mem_row = object_row = pool;
	row_pointer = &raw_row;
}

static int look(void **state)
{
	(void)state;
	fill_rows();
	view_open(&view, getpid(), false);
	return 0;
}

static int leave(void **state)
{
	(void)state;
	view_close(&view);
	return 0;
}

static struct python_allocators found(void)
{
	const struct elf_module *m = modules_find(&view.modules, (uint64_t)(uintptr_t)pool_malloc, true);
	struct python_allocators a;

	assert_non_null(m);
	python_allocators_find(&a, m, &view.tm, &view.maps);
	return a;
}

static void assert_refused(const char *why)
{
	struct python_allocators a = found();

	assert_int_equal(a.kind, PYTHON_ALLOCATOR_UNKNOWN);
	if (!strstr(a.why, why))
		fail_msg("refused for another reason: %s", a.why);
}

static void test_rows_are_found(void **state)
{
	struct python_allocators a = found();

	(void)state;
	if (a.kind != PYTHON_ALLOCATOR_POOL)
		fail_msg("%s", a.why);
	assert_int_equal(a.rows[DOMAIN_RAW].address, (uint64_t)(uintptr_t)&raw_row);
	assert_int_equal(a.rows[DOMAIN_MEM].address, (uint64_t)(uintptr_t)&mem_row);
	assert_int_equal(a.rows[DOMAIN_OBJECT].address, (uint64_t)(uintptr_t)&object_row);
	assert_memory_equal(a.rows[DOMAIN_OBJECT].words, object_row.words, sizeof object_row);
}

static void test_malloc_needs_no_hook(void **state)
{
	(void)state;
	mem_row = object_row = raw_row;
	assert_int_equal(found().kind, PYTHON_ALLOCATOR_MALLOC);
}

static void test_other_allocators_are_refused(void **state)
{
	(void)state;
	object_row.words[ROW_CONTEXT] = mem_row.words[ROW_CONTEXT] = (uint64_t)&another_row; /* tracemalloc */
	assert_refused("another allocator");
	object_row.words[ROW_CONTEXT] = mem_row.words[ROW_CONTEXT] = 0;
	mem_row.words[ROW_FREE] = (uint64_t)without_limit;
	assert_refused("another allocator");
	mem_row.words[ROW_FREE] = object_row.words[ROW_FREE] = (uint64_t)(uintptr_t)memcpy; /* of another module */
	assert_refused("not the interpreter's");
	mem_row.words[ROW_FREE] = object_row.words[ROW_FREE] = (uint64_t)pool_calloc;
	assert_refused("are the same");
	mem_row.words[ROW_FREE] = object_row.words[ROW_FREE] = (uint64_t)pool_free;
	mem_row.words[ROW_MALLOC] = object_row.words[ROW_MALLOC] = (uint64_t)without_limit;
	assert_refused("does not compare");
}

/* Tools of the interpreter itself, which pass on to a row: before the allocator, or one before the other. */
static void test_tools_hide_no_third_allocator(void **state)
{
	static struct {
		uint64_t letter;
		struct row row;
	} checked;
	static struct row traced;

	(void)state;
	assert_true(found().no_third);
	for (unsigned i = ROW_MALLOC; i <= ROW_FREE; i++)
		raw_row.words[i] = (uint64_t)pool_free;
	checked.row = object_row;
	checked.letter = 'o';
	traced = (struct row){ { (uint64_t)&checked, (uint64_t)pool_calloc, (uint64_t)pool_calloc,
		                 (uint64_t)pool_calloc, (uint64_t)pool_calloc } };
	object_row = mem_row = traced;
	object_row.words[ROW_CONTEXT] = (uint64_t)&traced;
	assert_true(found().no_third);
	/* The same before malloc. */
	checked.row = raw_row;
	assert_true(found().no_third);
}

static void test_a_third_allocator_is_not_excluded(void **state)
{
	const uint64_t nowhere[] = { 8, UINT64_MAX, (uint64_t)(uintptr_t)memcpy, (uint64_t)(uintptr_t)pool_free };

	(void)state;
	object_row.words[ROW_MALLOC] = mem_row.words[ROW_MALLOC] = (uint64_t)without_limit;
	assert_false(found().no_third); /* mimalloc */
	fill_rows();
	mem_row.words[ROW_CALLOC] = (uint64_t)without_limit;
	assert_false(found().no_third); /* of two domains, each another */
	for (unsigned i = 0; i < sizeof nowhere / sizeof *nowhere; i++) {
		fill_rows();
		object_row.words[ROW_CONTEXT] = mem_row.words[ROW_CONTEXT] = nowhere[i];
		assert_false(found().no_third);
	}
	fill_rows();
	raw_row.words[ROW_CONTEXT] = object_row.words[ROW_CONTEXT] = (uint64_t)&raw_row; /* in a circle */
	for (unsigned i = ROW_MALLOC; i <= ROW_FREE; i++)
		raw_row.words[i] = (uint64_t)pool_free;
	assert_false(found().no_third);
	row_pointer = NULL; /* no table */
	assert_false(found().no_third);
}

/* Words that lead nowhere, and to data. */
static void test_forged_words_are_refused(void **state)
{
	const uint64_t forged[] = {
		0, 1, UINT64_MAX, UINT64_MAX - 7, 0x7fffffffffffull, (uint64_t)(uintptr_t)&raw_row
	};

	(void)state;
	for (unsigned i = 0; i < sizeof forged / sizeof *forged; i++)
		for (unsigned k = ROW_MALLOC; k <= ROW_FREE; k++) {
			fill_rows();
			mem_row.words[k] = object_row.words[k] = forged[i];
			assert_refused("not the interpreter's");
		}
}

/* The address from which the row is counted is data, which may be anything. */
static void test_forged_places_are_refused(void **state)
{
	struct row *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct row *const places[] = { (struct row *)8, (struct row *)UINT64_MAX, page,
		                       (struct row *)((char *)&raw_row + 1) };

	(void)state;
	for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
		row_pointer = places[i];
		assert_refused("not in the interpreter's own data");
	}
	row_pointer = NULL;
	assert_refused("do not refer to one row");
	row_pointer = &object_row;
	assert_refused("do not refer to one row");
	row_pointer = (struct row *)&mem_row.words[1];
	assert_refused("not three");
	munmap(page, 4096);
}

static bool no_words(void *context, uint64_t address, uint64_t *word)
{
	(void)context, (void)address, (void)word;
	return false;
}

/* Any bytes are read to an end, and what is not decoded ends it. */
static void test_any_bytes_are_read(void **state)
{
	struct word_references r;
	uint8_t code[256];
	uint64_t random = 1;

	(void)state;
	for (unsigned round = 0; round < 20000; round++) {
		for (unsigned i = 0; i < sizeof code; i++) {
			random = random * 6364136223846793005ull + 1442695040888963407ull;
			code[i] = (uint8_t)(random >> 56);
		}
		word_references_find(&r, code, round % sizeof code, random, no_words, NULL);
		assert_true(r.count <= WORD_REFERENCES_MAX);
	}
	for (unsigned i = 0; i + REFERENCE_BYTES <= sizeof code; i += REFERENCE_BYTES)
		memcpy(code + i, REFERENCE(i), REFERENCE_BYTES);
	word_references_find(&r, code, sizeof code, 0x1000, no_words, NULL);
	assert_int_equal(r.count, sizeof code / REFERENCE_BYTES);
	assert_true(word_references_has(&r, 0x1000 + REFERRED) && !word_references_has(&r, 0x1000 + REFERRED + 1));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, look, leave)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_rows_are_found),
		TEST(test_malloc_needs_no_hook),
		TEST(test_other_allocators_are_refused),
		TEST(test_tools_hide_no_third_allocator),
		TEST(test_a_third_allocator_is_not_excluded),
		TEST(test_forged_words_are_refused),
		TEST(test_forged_places_are_refused),
		cmocka_unit_test(test_any_bytes_are_read),
	};

	return cmocka_run_group_tests_name("python_allocators", tests, NULL, NULL);
}
