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

/* 3.12 and later in a library: the row is at a displacement from a variable's address. */
#define BY_POINTER(name, at)                                                                                           \
	FUNCTION(name, "mov row_pointer(%rip), %rax\nmov (%rax), %rcx\nmov " at "(%rax), %rax\nmov %rcx, %rdi\n"       \
	               "jmp *%rax")
BY_POINTER(PyMem_RawMalloc, "8");
BY_POINTER(PyMem_RawCalloc, "16");
BY_POINTER(PyMem_RawRealloc, "24");
BY_POINTER(PyMem_RawFree, "32");

/* By distance. */
#define DIRECT(name, at) FUNCTION(name, "mov mem_row(%rip), %rdi\njmp *mem_row + " at "(%rip)")
DIRECT(PyMem_Malloc, "8");
DIRECT(PyMem_Calloc, "16");
DIRECT(PyMem_Realloc, "24");
DIRECT(PyMem_Free, "32");

/* The allocator is a part of the function, and so is that of raw, which it passes on to. */
#define WITH_INSIDE(name, at)                                                                                          \
	FUNCTION(name, "push %rbx\nmov object_row + " at "(%rip), %rax\nlea object_row(%rip), %rbx\n"                  \
	               "mov (%rbx), %rdi\ncmp $1, %rax\njne 1f\n"                                                      \
	               "mov row_pointer(%rip), %rdx\nmov (%rdx), %rdi\ncall *" at "(%rdx)\n1: pop %rbx\njmp *%rax")
WITH_INSIDE(PyObject_Malloc, "8");
WITH_INSIDE(PyObject_Calloc, "16");
WITH_INSIDE(PyObject_Realloc, "24");
WITH_INSIDE(PyObject_Free, "32");

FUNCTION(pool_malloc, "lea -1(%rsi), %rax\ncmp $511, %rax\nja 1f\n1: ret\n.skip 600, 0x90");
FUNCTION(pool_calloc, "nop\nret");
FUNCTION(pool_realloc, "nop\nnop\nret");
FUNCTION(pool_free, "nop\nnop\nnop\nret");
FUNCTION(without_limit, "cmp $500, %rsi\nret\n.skip 600, 0x90");
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
	for (unsigned i = 0; i + 7 <= sizeof code; i += 7) /* mov i(%rip), %rax */
		memcpy(code + i, (uint8_t[]){ 0x48, 0x8b, 0x05, (uint8_t)(8 * i), 1, 0, 0 }, 7);
	word_references_find(&r, code, sizeof code, 0x1000, no_words, NULL);
	assert_int_equal(r.count, sizeof code / 7);
	assert_true(word_references_has(&r, 0x1107) && !word_references_has(&r, 0x1100));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, look, leave)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_rows_are_found),
		TEST(test_malloc_needs_no_hook),
		TEST(test_other_allocators_are_refused),
		TEST(test_forged_words_are_refused),
		TEST(test_forged_places_are_refused),
		cmocka_unit_test(test_any_bytes_are_read),
	};

	return cmocka_run_group_tests_name("python_allocators", tests, NULL, NULL);
}
