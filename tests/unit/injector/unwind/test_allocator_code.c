/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <string.h>

#include "unwind/allocator_code.h"
#include "arch/code.h"

static bool is_allocation(const char *name)
{
	return !strcmp(name, "malloc") || !strcmp(name, "free") || !strcmp(name, "calloc") || !strcmp(name, "realloc");
}

struct wanted {
	const char *name;
	uint64_t address;
};

static bool on_symbol(void *context, const char *name, uint64_t address, uint64_t bytes, unsigned type)
{
	struct wanted *w = context;

	(void)bytes, (void)type;
	if (!strcmp(name, w->name))
		w->address = address;
	return !w->address;
}

static enum allocator_part part_of(const struct allocator_code *code, const struct module_file *f, const char *name)
{
	struct wanted wanted = { .name = name };

	module_file_symbols(f, on_symbol, &wanted);
	assert_int_not_equal(wanted.address, 0);
	for (size_t i = 0; i < code->count; i++)
		if (wanted.address >= code->list[i].start && wanted.address < code->list[i].end)
			return code->list[i].part;
	return ALLOCATOR_NOT;
}

static void test_find_tells_the_parts(void **state)
{
	static const struct {
		const char *name;
		enum allocator_part part;
	} functions[] = {
		{ "malloc", ALLOCATOR_ENTERED },
		{ "free", ALLOCATOR_ENTERED },
		{ "own_tail", ALLOCATOR_ENTERED }, /* jumped to */
		{ "own_carve", ALLOCATOR_RELATED },
		{ "own_wait", ALLOCATOR_RELATED },
		{ "own_at_exit", ALLOCATOR_RELATED },    /* its address is taken */
		{ "own_statistics", ALLOCATOR_RELATED }, /* calls what waits for the lock */
		{ "own_trim", ALLOCATOR_RELATED },       /* refers to the lock */
		{ "program_allocates", ALLOCATOR_NOT },
		{ "program_works", ALLOCATOR_NOT },
		{ "main", ALLOCATOR_NOT },
	};
	struct victim victim;
	struct view view;
	struct module_file file;
	struct allocator_code code;
	struct err e;

	(void)state;
	victim_start(&victim, "victim_own_malloc", NULL, NULL);
	view_open(&view, victim.pid, false);
	const struct elf_module *m = view_module(&view, "victim_own_malloc");
	module_file_open(&file, m, &view.tm, &view.maps);
	assert_int_equal(allocator_code_find(&code, &file, is_allocation, view.libc.module, &e), 0);
	if (code.unknown)
		fail_msg("%s", code.unknown);
	for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
		if (part_of(&code, &file, functions[i].name) != functions[i].part)
			fail_msg("%s: %d", functions[i].name, part_of(&code, &file, functions[i].name));
	allocator_code_done(&code);
	module_file_close(&file);
	view_close(&view);
	victim_end(&victim);
}

/* The loader has no malloc of its own, or one that nobody exports. */
static void test_find_gives_no_answer_without_malloc(void **state)
{
	struct victim victim;
	struct view view;
	struct module_file file;
	struct allocator_code code;
	struct err e;

	(void)state;
	victim_start(&victim, "victim_own_malloc", NULL, NULL);
	view_open(&view, victim.pid, false);
	module_file_open(&file, view_module(&view, "ld-linux"), &view.tm, &view.maps);
	assert_int_equal(allocator_code_find(&code, &file, is_allocation, NULL, &e), 0);
	assert_non_null(code.unknown);
	allocator_code_done(&code);
	module_file_close(&file);
	view_close(&view);
	victim_end(&victim);
}

static bool jumps(const char *code, size_t bytes)
{
	uint8_t padded[64];
	const struct code_extent module = { 0x1000, 0x20000 };

	memset(padded, 0x90, sizeof padded);
	memcpy(padded + 16, code, bytes);
	return code_jumps_by_pointer(padded, sizeof padded, 0x18000, &module);
}

static void test_jumps_by_pointer(void **state)
{
	(void)state;
	assert_true(jumps("\xff\xe0", 2));                             /* jmp *%rax */
	assert_true(jumps("\x41\xff\xe3", 3));                         /* jmp *%r11 */
	assert_true(jumps("\x5b\xff\x60\x10", 4));                     /* pop; jmp *16(%rax) */
	assert_true(jumps("\xff\x25\x00\x01\x00\x00", 6));             /* jmp *256(%rip) */
	assert_true(jumps("\x48\xc7\xc6\xff\xff\xff\xff\xff\xe0", 9)); /* mov $-1,%rsi; jmp *%rax */
	assert_false(jumps("\x48\x01\xd0\xff\xe0", 5));                /* a switch: add %rdx,%rax; jmp *%rax */
	assert_false(jumps("\x48\x01\xd0\x3e\xff\xe0", 6));            /* … notrack */
	assert_false(jumps("\xff\x24\xc5\x00\x00\x01\x00", 7));        /* … at a fixed address */
	assert_false(jumps("\xe8\xff\x20\xff\xff", 5));                /* call back by 0xdf01 */
	assert_false(jumps("\x41\x81\xff\xe7\x00\x00\x00", 7));        /* cmp $231,%r15d */
	assert_false(jumps("\x48\xc7\xc0\xc0\xff\xff\xff\x64\x48\x8b\x00", 11)); /* mov $-64,%rax; mov %fs:… */
	assert_false(jumps("\xff\xd0", 2));                                      /* call *%rax */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find_tells_the_parts),
		cmocka_unit_test(test_find_gives_no_answer_without_malloc),
		cmocka_unit_test(test_jumps_by_pointer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
