/* SPDX-License-Identifier: MIT */
/* The plan, on one program built in all the shapes that decide what a GOT entry holds. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

static const struct elf_module *main_of(const struct view *view)
{
	return modules_main(&view->modules);
}

/* What must hold for every plan: originals are functions of that name, never stubs; trampolines fit; nothing is in the
 * loader. */
static void check_plan(const struct view *view)
{
	for (size_t i = 0; i < view->plans.entry_count; i++) {
		const struct entry_plan *s = &view->plans.entries[i];
		const struct elf_module *definer = modules_find(&view->modules, s->original, true);
		struct elf_symbol symbol;
		uint64_t value;
		struct err e;

		assert_non_null(definer);
		assert_true(elf_module_defines_at(definer, listed_hook_symbol(s->hook), s->original, &symbol));
		assert_true(s->trampoline < view->plans.trampoline_count);
		assert_int_equal(view->plans.trampolines[s->trampoline].original, s->original);
		assert_int_equal(view->plans.trampolines[s->trampoline].hook, s->hook);
		assert_int_equal(target_read_u64(&view->tm, s->address, &value, &e), 0);
		assert_int_equal(value, s->value);
		assert_int_equal(s->page_protection, maps_find(&view->maps, s->address)->prot);
		assert_false(view->modules.list[s->module].is_loader && view->libc.kind == LIBC_GLIBC);
		if (i)
			assert_true(s[-1].module < s->module || s[-1].address < s->address);
	}
}

static void begin(struct victim *v, struct view *view, const char *program, const char *environment)
{
	victim_start(v, program, NULL, environment);
	view_open(view, v->pid, true);
	check_plan(view);
	assert_int_equal(view->plans.refusal_count, 0);
}

static void end(struct victim *v, struct view *view)
{
	view_close(view);
	victim_end(v);
}

static void check_lazy(const char *program)
{
	struct victim v;
	struct view view;

	begin(&v, &view, program, NULL);
	/* realloc and calloc are not called before the order comes: their GOT entries hold lazy stubs. */
	const struct entry_plan *s = view_entry(&view, main_of(&view), HOOK_realloc, RELOCATION_JUMP_SLOT);
	assert_non_null(s);
	assert_true(elf_module_holds(main_of(&view), s->value, 1, PF_X));
	assert_ptr_equal(modules_find(&view.modules, s->original, true), view.libc.module);
	assert_false(s->escapes);
	uint64_t original = s->original, address = s->address;
	victim_order(&v, 'r');
	view_close(&view);
	view_open(&view, v.pid, true);
	check_plan(&view);
	s = view_entry(&view, main_of(&view), HOOK_realloc, RELOCATION_JUMP_SLOT);
	assert_non_null(s);
	/* What the loader has bound it to is what was foretold. */
	assert_int_equal(s->address, address);
	assert_int_equal(s->value, original);
	assert_int_equal(s->original, original);
	end(&v, &view);
}

static void test_entries_lazy(void **state)
{
	(void)state;
	check_lazy("victim_lazy");
}

static void test_entries_lazy_ibt(void **state)
{
	(void)state;
	check_lazy("victim_ibt");
}

static void test_entries_now_relro(void **state)
{
	struct victim v;
	struct view view;

	(void)state;
	begin(&v, &view, "victim_now", NULL);
	const struct entry_plan *s = view_entry(&view, main_of(&view), HOOK_calloc, 0);
	assert_non_null(s);
	assert_int_equal(s->page_protection, PROT_READ);
	/* malloc and free are also taken as values. */
	assert_non_null(s = view_entry(&view, main_of(&view), HOOK_free, RELOCATION_GLOB_DAT));
	assert_true(s->escapes);
	assert_non_null(s = view_entry(&view, main_of(&view), HOOK_malloc, RELOCATION_WORD));
	assert_true(s->escapes);
	assert_int_equal(s->original, view.libc.malloc);
	end(&v, &view);
}

/* Words of data that the program has put functions of its own into are passed over, what those call is planned. */
static void test_entries_redirected_data(void **state)
{
	struct victim v;
	struct view view;
	unsigned words = 0;

	(void)state;
	begin(&v, &view, "victim_now", NULL);
	for (size_t i = 0; i < view.plans.entry_count; i++)
		words += view.plans.entries[i].relocation == RELOCATION_WORD &&
		         &view.modules.list[view.plans.entries[i].module] == main_of(&view);
	assert_int_equal(words, 1); /* table; not allocate and discard */
	assert_non_null(view_entry(&view, main_of(&view), HOOK_malloc, RELOCATION_JUMP_SLOT));
	end(&v, &view);
}

/* ld -z mark-plt keeps the address of the PLT entry in the addend of each jump GOT entry. */
static void test_entries_mark_plt(void **state)
{
	struct victim v;
	struct view view;
	unsigned addends = 0;
	struct err e;

	(void)state;
	if (access(VICTIM_DIR "/victim_markplt", X_OK)) {
		print_message("  the linker has no -z mark-plt: passed over\n");
		skip();
	}
	begin(&v, &view, "victim_markplt", NULL);
	AUTO_FREE Elf64_Rela *relas = NULL;
	size_t count;
	assert_int_equal(elf_module_relocations(main_of(&view), &view.tm, &main_of(&view)->jmprel, &relas, &count, &e),
	                 0);
	for (size_t i = 0; i < count; i++)
		addends += relas[i].r_addend != 0;
	assert_true(addends > 0);
	assert_non_null(view_entry(&view, main_of(&view), HOOK_realloc, RELOCATION_JUMP_SLOT));
	assert_non_null(view_entry(&view, main_of(&view), HOOK_calloc, RELOCATION_JUMP_SLOT));
	end(&v, &view);
}

static void test_entries_no_plt(void **state)
{
	struct victim v;
	struct view view;

	(void)state;
	begin(&v, &view, "victim_noplt", NULL);
	const struct entry_plan *s = view_entry(&view, main_of(&view), HOOK_calloc, RELOCATION_GLOB_DAT);
	assert_non_null(s);
	/* Called through, never loaded, where one instruction can do that. */
#ifdef __x86_64__
	assert_false(s->escapes);
#else
	assert_true(s->escapes);
#endif
	assert_non_null(s = view_entry(&view, main_of(&view), HOOK_free, RELOCATION_GLOB_DAT));
	assert_true(s->escapes);
	end(&v, &view);
}

/* &malloc is the program's own stub: every library's GLOB_DAT holds it. The original must be libc's. */
static void test_entries_non_pie_canonical_stub(void **state)
{
	struct victim v;
	struct view view;
	unsigned stubs = 0;

	(void)state;
	begin(&v, &view, "victim_nonpie", NULL);
	assert_int_equal(main_of(&view)->type, ET_EXEC);
	for (size_t i = 0; i < view.plans.entry_count; i++) {
		const struct entry_plan *s = &view.plans.entries[i];
		assert_ptr_equal(modules_find(&view.modules, s->original, true), view.libc.module);
		stubs += &view.modules.list[s->module] != main_of(&view) && s->value < main_of(&view)->end;
	}
	assert_true(stubs > 0);
	end(&v, &view);
}

static void test_entries_of_the_c_library(void **state)
{
	struct victim v;
	struct view view;

	(void)state;
	begin(&v, &view, "victim_now", NULL);
	assert_non_null(view_entry(&view, view.libc.module, HOOK_malloc, 0));
	assert_non_null(view_entry(&view, view.libc.module, HOOK_free, 0));
	assert_non_null(view_entry(&view, view.libc.module, HOOK_realloc, 0));
	assert_non_null(view_entry(&view, view.libc.module, HOOK_calloc, 0));
	const struct entry_route *r = view_route(&view, HOOK_malloc, view.libc.module);
	assert_true(r && r->hooked);
	r = view_route(&view, HOOK_reallocarray, view.libc.module);
	assert_true(!r || (!r->hooked && r->via == HOOK_realloc));
	end(&v, &view);
}

static void expect_via(const struct view *view, const struct elf_module *definer, uint32_t hook, uint32_t via)
{
	const struct entry_route *r = view_route(view, hook, definer);

	assert_non_null(r);
	assert_false(r->hooked);
	assert_int_equal(r->via, via);
	for (size_t i = 0; i < view->plans.entry_count; i++)
		assert_false(view->plans.entries[i].hook == hook && view->plans.entries[i].original == r->original);
}

static bool imports(const struct elf_module *m, const char *name)
{
	for (uint32_t i = 1; i < m->symbol_count; i++)
		if (m->symbols[i].st_shndx == SHN_UNDEF && !strcmp(elf_module_symbol_name(m, i), name))
			return true;
	return false;
}

static void test_routes_of_libstdcxx(void **state)
{
	struct victim v;
	struct view view;

	(void)state;
	begin(&v, &view, "victim_cxx", NULL);
	const struct elf_module *cxx = view_module(&view, "libstdc++");
	expect_via(&view, cxx, HOOK_new, HOOK_malloc);
	expect_via(&view, cxx, HOOK_new_array, HOOK_new);
	expect_via(&view, cxx, HOOK_new_nothrow, HOOK_new);
	/* GCC 12 has it call aligned_alloc, GCC 14 posix_memalign. */
	expect_via(&view, cxx, HOOK_new_aligned,
	           imports(cxx, "aligned_alloc") ? HOOK_aligned_alloc : HOOK_posix_memalign);
	expect_via(&view, cxx, HOOK_delete, HOOK_free);
	expect_via(&view, cxx, HOOK_delete_sized, HOOK_delete);
	assert_non_null(view_entry(&view, cxx, HOOK_malloc, 0));
	assert_non_null(view_entry(&view, cxx, HOOK_free, 0));
	end(&v, &view);
}

static void test_entries_with_a_preloaded_allocator(void **state)
{
	struct victim v;
	struct view view;

	(void)state;
	begin(&v, &view, "victim_cxx", "LD_PRELOAD=" VICTIM_DIR "/libvictim_allocator.so");
	const struct elf_module *allocator = view_module(&view, "libvictim_allocator.so");
	assert_ptr_equal(view.libc.allocator, allocator);
	assert_int_equal(view.libc.usable_size, 0);
	const struct entry_plan *s = view_entry(&view, view.libc.module, HOOK_malloc, 0);
	assert_non_null(s);
	assert_ptr_equal(modules_find(&view.modules, s->original, true), allocator);
	/* Its operator new is hooked, and the malloc that it calls on the slow path is not counted again. */
	assert_non_null(s = view_entry(&view, main_of(&view), HOOK_new, 0));
	assert_ptr_equal(modules_find(&view.modules, s->original, true), allocator);
	assert_null(view_entry(&view, allocator, HOOK_malloc, 0));
	/* What it does not define is still libstdc++'s, which passes on to it. */
	expect_via(&view, view_module(&view, "libstdc++"), HOOK_new_array, HOOK_new);
	end(&v, &view);
}

/* No unwinder knows a payload that memattach has mapped by itself. */
static void test_plan_refuses_functions_that_throw_where_the_payload_is_mapped(void **state)
{
	const struct got_plan_options options = { .groups = GROUP_BIT(GROUP_MALLOC), .skip_notes = true };
	struct victim v;
	struct view view;
	struct got_plan plan;
	unsigned refused = 0;
	struct err e;

	(void)state;
	begin(&v, &view, "victim_cxx", "LD_PRELOAD=" VICTIM_DIR "/libvictim_allocator.so");
	assert_int_equal(got_plan_make(&plan, &view.modules, &view.libc, &view.tm, &view.maps, &options, &e), 0);
	const size_t all = plan.entry_count;
	struct control_trampoline *new = NULL;
	for (size_t i = 0; i < plan.trampoline_count; i++)
		if (plan.trampolines[i].hook == HOOK_new)
			new = &plan.trampolines[i];
	assert_non_null(new);
	/* With another function to call instead none is refused. */
	new->quiet = new->original;
	assert_int_equal(got_plan_refuse_throwing(&plan, &view.modules, &e), 0);
	assert_int_equal(plan.entry_count, all);
	new->quiet = 0;
	assert_int_equal(got_plan_refuse_throwing(&plan, &view.modules, &e), 0);
	assert_int_equal(plan.entry_count + plan.refusal_count, all);
	for (size_t i = 0; i < plan.entry_count; i++)
		assert_true(plan.entries[i].hook != HOOK_new);
	for (size_t i = 0; i < plan.refusal_count; i++)
		refused += plan.refusals[i].hook == HOOK_new && strstr(plan.refusals[i].text, "throw") != NULL;
	assert_true(refused > 0 && plan.entry_count > 0);
	got_plan_free(&plan);
	end(&v, &view);
}

/* Another tool's hook: a value that is no function of that name. */
static void test_entries_refuse_foreign_values(void **state)
{
	struct victim v;
	struct view view;
	const struct got_plan_options options = { .groups = GROUP_BIT(GROUP_MALLOC) };
	struct got_plan again;
	struct err e;
	uint64_t other;

	(void)state;
	victim_start(&v, "victim_lazy", NULL, NULL);
	view_open(&view, v.pid, true);
	const struct entry_plan *s = view_entry(&view, main_of(&view), HOOK_realloc, RELOCATION_JUMP_SLOT);
	assert_non_null(s);
	uint64_t address = s->address, old = s->value;
	struct elf_symbol strlen_like;
	assert_true(elf_module_find(view.libc.module, "getpid", NULL, &strlen_like));
	assert_int_equal(ptrace(PTRACE_SEIZE, v.pid, 0, 0), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, v.pid, 0, 0), 0);
	assert_int_equal(waitpid(v.pid, NULL, 0), v.pid);
	assert_int_equal(
		ptrace(PTRACE_POKEDATA, v.pid, (void *)(uintptr_t)address, (void *)(uintptr_t)strlen_like.address), 0);
	assert_int_equal(got_plan_make(&again, &view.modules, &view.libc, &view.tm, &view.maps, &options, &e), 0);
	assert_int_equal(again.refusal_count, 1);
	assert_non_null(strstr(again.refusals[0].text, "realloc not patched"));
	assert_int_equal(again.entry_count, view.plans.entry_count - 1);
	got_plan_free(&again);
	other = (uint64_t)(uintptr_t)&other;
	assert_int_equal(ptrace(PTRACE_POKEDATA, v.pid, (void *)(uintptr_t)address, (void *)(uintptr_t)other), 0);
	assert_int_equal(got_plan_make(&again, &view.modules, &view.libc, &view.tm, &view.maps, &options, &e), 0);
	assert_int_equal(again.refusal_count, 1);
	got_plan_free(&again);
	assert_int_equal(ptrace(PTRACE_POKEDATA, v.pid, (void *)(uintptr_t)address, (void *)(uintptr_t)old), 0);
	assert_int_equal(ptrace(PTRACE_DETACH, v.pid, 0, 0), 0);
	end(&v, &view);
}

static void poke(pid_t pid, uint64_t address, uint64_t value)
{
	assert_int_equal(ptrace(PTRACE_POKEDATA, pid, (void *)(uintptr_t)address, (void *)(uintptr_t)value), 0);
}

/*
 * A word of data into which the program has put a function of another module: passed over if that function is exported,
 * and its module's own calls are seen. The C library has no such calls; and what nobody exports may be a hook.
 */
static void test_entries_redirected_to_other_modules(void **state)
{
	static const struct {
		const char *module, *function;
		uint64_t inside; /* of it */
		unsigned refused;
	} cases[] = { { "victim_plugin", "plugin_copy", 0, 0 },
		      { "victim_plugin", "plugin_copy", 1, 1 },
		      { "libc.so", "getpid", 0, 1 } };
	struct victim v;
	struct view view;
	const struct got_plan_options options = { .groups = GROUP_BIT(GROUP_MALLOC) };
	struct elf_symbol function;
	struct got_plan again;
	struct err e;

	(void)state;
	victim_start(&v, "victim_now", VICTIM_DIR "/libvictim_plugin.so", NULL);
	victim_order(&v, 'o');
	view_open(&view, v.pid, true);
	const struct entry_plan *s = view_entry(&view, main_of(&view), HOOK_malloc, RELOCATION_WORD);
	assert_non_null(s);
	assert_int_equal(ptrace(PTRACE_SEIZE, v.pid, 0, 0), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, v.pid, 0, 0), 0);
	assert_int_equal(waitpid(v.pid, NULL, 0), v.pid);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct elf_module *m = NULL;
		for (size_t k = 0; k < view.modules.count; k++)
			if (strstr(elf_module_name(&view.modules.list[k]), cases[i].module))
				m = &view.modules.list[k];
		assert_non_null(m);
		assert_true(elf_module_find(m, cases[i].function, NULL, &function));
		poke(v.pid, s->address, function.address + cases[i].inside);
		assert_int_equal(got_plan_make(&again, &view.modules, &view.libc, &view.tm, &view.maps, &options, &e),
		                 0);
		assert_int_equal(again.refusal_count, cases[i].refused);
		assert_int_equal(again.entry_count, view.plans.entry_count - 1);
		got_plan_free(&again);
	}
	poke(v.pid, s->address, s->value);
	assert_int_equal(ptrace(PTRACE_DETACH, v.pid, 0, 0), 0);
	end(&v, &view);
}

/* A second plan, when a library has come: trampolines keep their places, patched GOT entries are followed but not
 * planned again. */
static void test_entries_plan_again_for_later_modules(void **state)
{
	struct victim v;
	struct view view, later;
	struct got_plan more;
	struct err e;

	(void)state;
	victim_start(&v, "victim_lazy", VICTIM_DIR "/libvictim_plugin.so", NULL);
	view_open(&view, v.pid, true);
	struct got_entry *patched = calloc(view.plans.entry_count, sizeof *patched);
	assert_non_null(patched);
	for (size_t i = 0; i < view.plans.entry_count; i++)
		patched[i] = (struct got_entry){ .address = view.plans.entries[i].address,
			                         .old_value = view.plans.entries[i].value,
			                         .trampoline = view.plans.entries[i].trampoline,
			                         .state = GOT_PATCHED };
	victim_order(&v, 'o');
	view_open(&later, v.pid, false);
	const struct got_plan_options options = { .groups = GROUP_BIT(GROUP_MALLOC),
		                                  .trampolines = view.plans.trampolines,
		                                  .trampoline_count = view.plans.trampoline_count,
		                                  .patched = patched,
		                                  .patched_count = view.plans.entry_count,
		                                  .skip_notes = true };
	assert_int_equal(got_plan_make(&more, &later.modules, &later.libc, &later.tm, &later.maps, &options, &e), 0);
	assert_int_equal(more.entry_count, 2);
	assert_int_equal(more.trampoline_count, view.plans.trampoline_count);
	assert_memory_equal(more.trampolines, view.plans.trampolines,
	                    view.plans.trampoline_count * sizeof *more.trampolines);
	for (size_t i = 0; i < more.entry_count; i++)
		assert_ptr_equal(&later.modules.list[more.entries[i].module],
		                 view_module(&later, "libvictim_plugin.so"));
	got_plan_free(&more);
	free(patched);
	view_close(&later);
	view_close(&view);
	victim_end(&v);
}

/* A library in a namespace of its own is bound to its own copy of the C library. */
static void test_entries_in_another_namespace(void **state)
{
	struct victim v;
	struct view view;

	(void)state;
	victim_start(&v, "victim_lazy", VICTIM_DIR "/libvictim_plugin.so", NULL);
	victim_order(&v, 'n');
	view_open(&view, v.pid, true);
	check_plan(&view);
	const struct elf_module *plugin = view_module(&view, "libvictim_plugin.so"), *copy = NULL;
	assert_int_equal(plugin->namespace_id, 1);
	for (size_t i = 0; i < view.modules.count; i++)
		if (view.modules.list[i].namespace_id == 1 && !strcmp(view.modules.list[i].soname, "libc.so.6"))
			copy = &view.modules.list[i];
	assert_non_null(copy);
	assert_ptr_not_equal(copy, view.libc.module);
	const struct entry_plan *s = view_entry(&view, plugin, HOOK_malloc, 0);
	assert_non_null(s);
	assert_ptr_equal(modules_find(&view.modules, s->original, true), copy);
	assert_non_null(view_entry(&view, copy, HOOK_malloc, 0));
	assert_non_null(view_entry(&view, copy, HOOK_realloc, 0));
	end(&v, &view);
}

/* musl: d_ptr is not relocated, calloc calls malloc through a GOT entry, the loader is the libc and is patched. */
static void test_entries_on_musl(void **state)
{
	struct victim v;
	struct view view;

	(void)state;
	if (access(VICTIM_DIR "/victim_musl", X_OK)) {
		print_message("  no musl-gcc here: passed over\n");
		skip();
	}
	begin(&v, &view, "victim_musl", NULL);
	assert_int_equal(view.libc.kind, LIBC_MUSL);
	assert_true(view.libc.module->is_loader && !view.libc.dlclose_unmaps && view.libc.dlopen);
	expect_via(&view, view.libc.module, HOOK_calloc, HOOK_malloc);
	assert_non_null(view_entry(&view, view.libc.module, HOOK_malloc, 0));
	assert_non_null(view_entry(&view, main_of(&view), HOOK_realloc, 0));
	assert_non_null(view_entry(&view, main_of(&view), HOOK_malloc, RELOCATION_WORD));
	end(&v, &view);
}

static void test_hook_names(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < HOOK_COUNT; i++)
		assert_int_equal(listed_hook_by_symbol(listed_hook_symbol(i)),
		                 listed_hook_group(i) >= GROUP_PYTHON ? HOOK_COUNT : i);
	assert_int_equal(listed_hook_by_symbol("mallo"), HOOK_COUNT);
	assert_int_equal(listed_hook_by_symbol(""), HOOK_COUNT);
	assert_int_equal(listed_hook_by_symbol("_Z"), HOOK_COUNT);
	assert_string_equal(listed_hook_symbol(HOOK_COUNT), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hook_names),
		cmocka_unit_test(test_entries_lazy),
		cmocka_unit_test(test_entries_lazy_ibt),
		cmocka_unit_test(test_entries_now_relro),
		cmocka_unit_test(test_entries_redirected_data),
		cmocka_unit_test(test_entries_mark_plt),
		cmocka_unit_test(test_entries_no_plt),
		cmocka_unit_test(test_entries_non_pie_canonical_stub),
		cmocka_unit_test(test_entries_of_the_c_library),
		cmocka_unit_test(test_routes_of_libstdcxx),
		cmocka_unit_test(test_plan_refuses_functions_that_throw_where_the_payload_is_mapped),
		cmocka_unit_test(test_entries_with_a_preloaded_allocator),
		cmocka_unit_test(test_entries_on_musl),
		cmocka_unit_test(test_entries_in_another_namespace),
		cmocka_unit_test(test_entries_refuse_foreign_values),
		cmocka_unit_test(test_entries_redirected_to_other_modules),
		cmocka_unit_test(test_entries_plan_again_for_later_modules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
