/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <string.h>
#include <unistd.h>

#include "allocators/allocator_find.h"
#include "allocators/function_table.h"

/* ---- names ---- */

static void assert_name(const char *symbol, enum allocator_family family, uint32_t hook, unsigned shape, unsigned size)
{
	struct allocation_name name;

	if (!allocation_name_read(symbol, &name))
		fail_msg("%s is not known", symbol);
	assert_int_equal(name.family, family);
	assert_int_equal(name.hook, hook);
	assert_int_equal(name.shape, shape);
	assert_int_equal(name.size, size);
}

static void test_names_have_prefixes(void **state)
{
	(void)state;
	assert_name("malloc", FAMILY_PLAIN, HOOK_malloc, SHAPE_ALLOC, SIZE_ARG0);
	assert_name("__libc_calloc", FAMILY_PLAIN, HOOK_calloc, SHAPE_ALLOC, SIZE_ARG0_X_ARG1);
	assert_name("__real_free", FAMILY_PLAIN, HOOK_free, SHAPE_FREE, SIZE_NONE);
	assert_name("je_sdallocx", FAMILY_JEMALLOC, HOOK_sdallocx, SHAPE_FREE, SIZE_NONE);
	assert_name("_rjem_mallocx", FAMILY_JEMALLOC, HOOK_mallocx, SHAPE_ALLOC, SIZE_ARG0);
	assert_name("tc_posix_memalign", FAMILY_TCMALLOC, HOOK_posix_memalign, SHAPE_OUT, SIZE_ARG2);
	assert_name("tc_newarray", FAMILY_TCMALLOC, HOOK_new_array, SHAPE_ALLOC, SIZE_ARG0);
	assert_name("mi_malloc_aligned", FAMILY_MIMALLOC, HOOK_malloc, SHAPE_ALLOC, SIZE_ARG0);
	assert_name("rpfree", FAMILY_RPMALLOC, HOOK_free, SHAPE_FREE, SIZE_NONE);
	assert_name("rpaligned_realloc", FAMILY_RPMALLOC, HOOK_realloc, SHAPE_REALLOC, SIZE_ARG2);
	assert_name("scudo_malloc", FAMILY_SCUDO, HOOK_malloc, SHAPE_ALLOC, SIZE_ARG0);
	assert_name("__rust_realloc", FAMILY_RUST, HOOK_realloc, SHAPE_REALLOC, SIZE_ARG3);
	assert_name("__rdl_dealloc", FAMILY_RUST, HOOK_free, SHAPE_FREE, SIZE_NONE);
	assert_name("_RNvCsfLfy6EI15iL_7___rustc12___rust_alloc", FAMILY_RUST, HOOK_malloc, SHAPE_ALLOC, SIZE_ARG0);
	assert_name("_ZnwmSt11align_val_t", FAMILY_PLAIN, HOOK_new_aligned, SHAPE_ALLOC, SIZE_ARG0);
}

static void test_names_of_other_functions_are_none(void **state)
{
	static const char *const others[] = { "",
		                              "mmap",
		                              "je_mmap",
		                              "munmap",
		                              "mallo",
		                              "malloc2",
		                              "je__Znwm",
		                              "je_",
		                              "rp",
		                              "_ZN3fooE",
		                              "_Znw",
		                              "xmalloc",
		                              "je_malloc_default",
		                              "__rust_start",
		                              "tc_version",
		                              "mi_version",
		                              "_RNvCsfLfy6EI15iL_7___rustc10rust_panic",
		                              "_RNvCsfLfy6EI15iL_7___rustc" };
	struct allocation_name name;

	(void)state;
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		if (allocation_name_read(others[i], &name))
			fail_msg("%s is taken for an allocation function", others[i]);
}

/* ---- allocators ---- */

struct look {
	struct victim victim;
	struct view view;
	struct allocators found;
};

static void look_open(struct look *l, const char *program, const char *environment)
{
	struct err e;

	victim_start(&l->victim, program, NULL, environment);
	view_open(&l->view, l->victim.pid, true);
	const struct allocators_input in = {
		&l->view.modules, &l->view.libc, &l->view.plans, &l->view.tm, &l->view.maps, NULL, 0
	};
	if (allocators_find(&l->found, &in, &e))
		fail_msg("%s", e.text);
}

static void look_close(struct look *l)
{
	allocators_free(&l->found);
	view_close(&l->view);
	victim_end(&l->victim);
}

static const struct allocator_function *function(const struct look *l, const char *module, const char *name)
{
	const struct elf_module *m = view_module(&l->view, module);
	struct elf_symbol s;

	assert_true(elf_module_find(m, name, NULL, &s));
	for (size_t i = 0; i < l->found.function_count; i++)
		if (l->found.functions[i].address == s.address)
			return &l->found.functions[i];
	fail_msg("%s of %s was not found", name, module);
	return NULL;
}

static void assert_layer(const struct look *l, const char *module, const char *name, enum allocator_layer layer)
{
	const struct allocator_function *fn = function(l, module, name);

	if (fn->layer != layer)
		fail_msg("%s of %s has layer %u, not %u", name, module, (unsigned)fn->layer, (unsigned)layer);
}

static const struct allocator *allocator_in(const struct look *l, const char *module)
{
	const struct elf_module *m = view_module(&l->view, module);

	for (size_t i = 0; i < l->found.count; i++)
		if (&l->view.modules.list[l->found.list[i].module] == m)
			return &l->found.list[i];
	return NULL;
}

static void test_operators_of_libstdcxx_are_wrappers(void **state)
{
	struct look l;

	(void)state;
	look_open(&l, "victim_cxx", NULL);
	assert_layer(&l, "libc.so.6", "malloc", LAYER_LOWEST);
	assert_layer(&l, "libc.so.6", "free", LAYER_LOWEST);
	assert_layer(&l, "libstdc++", "_Znwm", LAYER_WRAPPER);
	assert_layer(&l, "libstdc++", "_Znam", LAYER_WRAPPER);
	assert_layer(&l, "libstdc++", "_ZnwmSt11align_val_t", LAYER_WRAPPER);
	assert_layer(&l, "libstdc++", "_ZdlPv", LAYER_WRAPPER);
	assert_layer(&l, "libstdc++", "_ZdaPvm", LAYER_WRAPPER);
	assert_int_equal(l.found.count, 1);
	const struct allocator *a = allocator_in(&l, "libc.so.6");
	assert_non_null(a);
	assert_string_equal(a->name, "glibc");
	assert_string_equal(a->version, l.view.libc.version);
	assert_true(a->in_force && a->got_entries > 0 && a->got_modules > 1);
	/* Calls within the C library's allocator are its own affair. */
	assert_int_equal(a->direct_calls, 0);
	look_close(&l);
}

static void test_fast_path_of_a_wrapper_is_seen(void **state)
{
	struct look l;

	(void)state;
	look_open(&l, "victim_lazy", "LD_PRELOAD=" VICTIM_DIR "/libvictim_allocator.so");
	assert_layer(&l, "victim_allocator", "malloc", LAYER_LOWEST);
	assert_layer(&l, "victim_allocator", "calloc", LAYER_WRAPPER);
	assert_layer(&l, "victim_allocator", "realloc", LAYER_MIXED);
	assert_layer(&l, "victim_allocator", "_Znwm", LAYER_MIXED);
	const struct allocator *a = allocator_in(&l, "victim_allocator");
	assert_non_null(a);
	assert_string_equal(a->name, "an allocator of its own");
	assert_true(a->in_force);
	/* A function of one byte: ret. */
	assert_string_equal(function(&l, "victim_allocator", "free")->entry_refusal,
	                    "its first instruction cannot be run twice");
	look_close(&l);
}

static void test_quiet_functions_are_proved(void **state)
{
	struct look l;

	(void)state;
	look_open(&l, "victim_lazy", "LD_PRELOAD=" VICTIM_DIR "/libvictim_quiet0.so");
	assert_layer(&l, "victim_quiet0", "_Znwm", LAYER_LOWEST);
	assert_layer(&l, "victim_quiet0", "_Znam", LAYER_LOWEST);
	const struct allocator_function *fn = function(&l, "victim_quiet0", "_Znwm");
	assert_int_equal(fn->quiet, function(&l, "victim_quiet0", "malloc")->address);
	assert_false(fn->quiet_aligned);
	/* What its operator delete[] does, nobody knows. */
	assert_int_equal(function(&l, "victim_quiet0", "_Znam")->quiet, 0);
	fn = function(&l, "victim_quiet0", "_ZnwmSt11align_val_t");
	assert_int_equal(fn->quiet, function(&l, "victim_quiet0", "memalign")->address);
	assert_true(fn->quiet_aligned);
	look_close(&l);

	/* Its malloc runs the program's new_handler. */
	look_open(&l, "victim_lazy", "LD_PRELOAD=" VICTIM_DIR "/libvictim_quiet1.so");
	assert_layer(&l, "victim_quiet1", "_Znwm", LAYER_LOWEST);
	assert_int_equal(function(&l, "victim_quiet1", "_Znwm")->quiet, 0);
	assert_int_equal(function(&l, "victim_quiet1", "_ZnwmSt11align_val_t")->quiet, 0);
	look_close(&l);

	/* Its operator delete may tell a block of malloc from one of operator new, whatever that is called. */
	look_open(&l, "victim_lazy", "LD_PRELOAD=" VICTIM_DIR "/libvictim_checked.so");
	assert_layer(&l, "victim_checked", "_ZnwmSt11align_val_t", LAYER_LOWEST);
	assert_int_equal(function(&l, "victim_checked", "_Znwm")->quiet, 0);
	assert_int_equal(function(&l, "victim_checked", "_ZnwmSt11align_val_t")->quiet, 0);
	look_close(&l);

	/* It calls malloc only after the program's new_handler; its operator delete jumps to free by the PLT. */
	if (JEMALLOC_LIBRARY[0]) {
		look_open(&l, "victim_lazy", "LD_PRELOAD=" JEMALLOC_LIBRARY);
		fn = function(&l, "libjemalloc", "_Znwm");
		assert_true(fn->layer == LAYER_LOWEST || fn->own_until_handler);
		assert_int_equal(fn->quiet, function(&l, "libjemalloc", "malloc")->address);
		look_close(&l);
	}

	/* It calls malloc, too. */
	look_open(&l, "victim_lazy", "LD_PRELOAD=" VICTIM_DIR "/libvictim_allocator.so");
	assert_int_equal(function(&l, "victim_allocator", "_Znwm")->quiet, 0);
	look_close(&l);
}

/* The table of call frame information and the symbols agree. */
static void test_table_knows_functions(void **state)
{
	struct function_table table;
	struct module_file file;
	struct elf_symbol s;
	struct look l;

	(void)state;
	look_open(&l, "victim_cxx", NULL);
	const struct elf_module *m = view_module(&l.view, "libstdc++");
	module_file_open(&file, m, &l.view.tm, &l.view.maps);
	function_table_open(&table, &file);
	assert_true(table.count > 1000);
	assert_true(elf_module_find(m, "_Znwm", NULL, &s) && s.bytes > 0);
	assert_int_equal(function_table_bytes(&table, s.address, 0), s.bytes);
	assert_int_equal(function_table_bytes(&table, s.address, 1), s.bytes);
	assert_int_equal(function_table_bytes(&table, s.address + 1, 0), 0);
	assert_int_equal(function_table_bytes(&table, m->exec_end, 16), 0);
	assert_in_range(function_table_after(&table, s.address), s.address + s.bytes, s.address + s.bytes + 64);
	assert_int_equal(function_table_before(&table, function_table_after(&table, s.address)), s.address);
	function_table_close(&table);
	module_file_close(&file);
	look_close(&l);
}

static const struct allocator_function *found_again(struct look *l, char order)
{
	const struct allocators_input in = {
		&l->view.modules, &l->view.libc, &l->view.plans, &l->view.tm, &l->view.maps, NULL, 0
	};
	struct err e;

	victim_order(&l->victim, order);
	allocators_free(&l->found);
	assert_int_equal(allocators_find(&l->found, &in, &e), 0);
	return function(l, "victim_own", "rpmalloc");
}

/* An int3 in the first byte is that of a uprobe, which is left alone. */
static void test_changed_code_is_refused(void **state)
{
	struct look l;

	(void)state;
	look_open(&l, "victim_own", NULL);
	const struct allocator_function *fn = function(&l, "victim_own", "rpmalloc");
	const struct entry_code_plan before = fn->entry;
	assert_string_equal(fn->entry_refusal, "");
	fn = found_again(&l, 'b');
	assert_string_equal(fn->entry_refusal, "");
	assert_memory_equal(&fn->entry, &before, sizeof before);
	assert_string_equal(found_again(&l, 'n')->entry_refusal, "its code was changed since it was loaded");
	look_close(&l);
}

/* Bytes that look like a branch, in the middle of another instruction, are none; but what looks like an instruction may
 * be data. */
static void test_branches_behind_an_entry(void **state)
{
	struct look l;

	(void)state;
	look_open(&l, "victim_own", NULL);
	assert_string_equal(function(&l, "victim_own", "rprealloc")->entry_refusal,
	                    "other code jumps into its first instructions");
	assert_string_equal(function(&l, "victim_own", "rpaligned_alloc")->entry_refusal,
	                    "other code jumps into its first instructions");
	assert_string_equal(function(&l, "victim_own", "rpfree")->entry_refusal, "");
	look_close(&l);
}

static void test_direct_calls_are_counted(void **state)
{
	struct look l;

	(void)state;
	look_open(&l, "victim_own", NULL);
	const struct allocator *a = allocator_in(&l, "victim_own");
	assert_non_null(a);
	assert_string_equal(a->name, "rpmalloc");
	assert_false(a->in_force);
	assert_int_equal(a->got_entries, 0);
	assert_int_equal(a->direct_calls, 4);
	assert_int_equal(a->address_taken, 2);
	assert_int_equal(a->count, 5);
	look_close(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_have_prefixes),
		cmocka_unit_test(test_names_of_other_functions_are_none),
		cmocka_unit_test(test_operators_of_libstdcxx_are_wrappers),
		cmocka_unit_test(test_fast_path_of_a_wrapper_is_seen),
		cmocka_unit_test(test_quiet_functions_are_proved),
		cmocka_unit_test(test_table_knows_functions),
		cmocka_unit_test(test_changed_code_is_refused),
		cmocka_unit_test(test_branches_behind_an_entry),
		cmocka_unit_test(test_direct_calls_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
