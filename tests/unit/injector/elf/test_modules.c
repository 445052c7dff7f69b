/* SPDX-License-Identifier: MIT */
/* Modules, C library, scope, caves and the watch, on real processes. */
#include "fixture.h"

#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "touch/remote/cave.h"
#include "elf/loader_locks.h"

#ifdef __x86_64__
#define FIRST_GLIBC "GLIBC_2.2.5"
#define LATEST_MEMCPY "GLIBC_2.14"
#else
#define FIRST_GLIBC "GLIBC_2.17"
#define LATEST_MEMCPY "GLIBC_2.17"
#endif

static void test_modules_read_finds_all(void **state)
{
	struct victim v;
	struct view view;

	(void)state;
	victim_start(&v, "victim_now", NULL, NULL);
	view_open(&view, v.pid, false);
	assert_true(view.modules.consistent);
	assert_string_equal(view.modules.unread, "");
	assert_ptr_equal(modules_main(&view.modules), view_module(&view, "victim_now"));
	assert_ptr_equal(modules_loader(&view.modules), view_module(&view, "ld-linux"));
	assert_true(view_module(&view, "[vdso]")->is_vdso);
	/* Every executable file mapping belongs to a module. */
	for (size_t i = 0; i < view.maps.count; i++) {
		const struct mapping *m = &view.maps.list[i];
		if (m->prot & PROT_EXEC && m->inode)
			assert_non_null(modules_find(&view.modules, m->start, true));
	}
	const struct elf_module *libc = view_module(&view, "libc.so.6");
	assert_string_equal(libc->soname, "libc.so.6");
	assert_true(libc->build_id_bytes >= 8 && libc->relro_end > libc->relro_start && libc->inode);
	assert_true(libc->link_map && libc->exec_end > libc->exec_start && libc->symbol_count > 1000);
	view_close(&view);
	victim_end(&v);
}

static void test_libc_find_on_glibc(void **state)
{
	struct victim v;
	struct view view;
	struct elf_symbol s;

	(void)state;
	victim_start(&v, "victim_lazy", NULL, NULL);
	view_open(&view, v.pid, false);
	assert_int_equal(view.libc.kind, LIBC_GLIBC);
	assert_memory_equal(view.libc.version, "2.", 2);
	assert_ptr_equal(view.libc.allocator, view.libc.module);
	assert_true(view.libc.dlopen && view.libc.dlclose && view.libc.errno_location && view.libc.usable_size);
	assert_true(elf_module_find(view.libc.module, "malloc", NULL, &s));
	assert_int_equal(s.address, view.libc.malloc);
	assert_true(elf_module_find(view.libc.module, "malloc", FIRST_GLIBC, &s));
	assert_false(elf_module_find(view.libc.module, "malloc", "GLIBC_9.9", &s));
	assert_false(elf_module_find(view.libc.module, "no_such_function", NULL, &s));
	assert_true(elf_module_defines_ifunc(view.libc.module, "memcpy"));
	/* Of several versions, the default one. */
	if (elf_module_find(view.libc.module, "memcpy", FIRST_GLIBC, &s)) {
		struct elf_symbol latest;
		assert_true(elf_module_find(view.libc.module, "memcpy", NULL, &latest));
		assert_string_equal(elf_module_symbol_version(view.libc.module, latest.number), LATEST_MEMCPY);
	}
	view_close(&view);
	victim_end(&v);
}

static int look_at_locks(struct dl_phdr_info *info, size_t size, void *context)
{
	const struct view *view = context;

	(void)info, (void)size;
	/* Its write lock is held while this is called. */
	return loader_locks_are_free(loader_locks_find(&view->modules, &view->tm), &view->tm) ? 1 : 2;
}

static void test_loader_locks_are_seen(void **state)
{
	struct view view;

	(void)state;
	view_open(&view, getpid(), false);
	const uint64_t locks = loader_locks_find(&view.modules, &view.tm);
	assert_true(locks);
	assert_true(loader_locks_are_free(locks, &view.tm));
	assert_int_equal(dl_iterate_phdr(look_at_locks, &view), 2);
	assert_true(loader_locks_are_free(locks, &view.tm));
	view_close(&view);
}

static void test_modules_changed_sees_dlopen(void **state)
{
	struct victim v;
	struct view view, later;
	struct err e;
	bool changed, consistent;
	uint32_t next_id = 100;

	(void)state;
	victim_start(&v, "victim_lazy", VICTIM_DIR "/libvictim_plugin.so", NULL);
	view_open(&view, v.pid, false);
	assert_int_equal(modules_changed(&view.modules, &view.tm, &changed, &consistent, &e), 0);
	assert_false(changed);
	assert_true(consistent);
	victim_order(&v, 'o');
	assert_int_equal(modules_changed(&view.modules, &view.tm, &changed, &consistent, &e), 0);
	assert_true(changed);
	view_open(&later, v.pid, false);
	modules_number(&later.modules, &view.modules, &next_id);
	assert_int_equal(view_module(&later, "libvictim_plugin.so")->id, 100);
	assert_int_equal(view_module(&later, "libc.so.6")->id, view_module(&view, "libc.so.6")->id);
	victim_order(&v, 'c');
	assert_int_equal(modules_changed(&later.modules, &later.tm, &changed, NULL, &e), 0);
	assert_true(changed);
	assert_int_equal(modules_changed(&view.modules, &view.tm, &changed, NULL, &e), 0);
	view_close(&later);
	view_close(&view);
	victim_end(&v);
}

static void test_modules_watch_word_sees_a_fresh_image(void **state)
{
	struct victim v;
	struct view view;
	struct err e;
	bool changed;
	uint64_t value;

	(void)state;
	victim_start(&v, "victim_lazy", NULL, NULL);
	view_open(&view, v.pid, true);
	const struct entry_plan *s = view_entry(&view, modules_main(&view.modules), HOOK_calloc, RELOCATION_JUMP_SLOT);
	assert_non_null(s);
	assert_int_equal(target_read_u64(&view.tm, s->address, &value, &e), 0);
	assert_int_equal(modules_watch_word(&view.modules, s->address, value, &e), 0);
	assert_int_equal(modules_changed(&view.modules, &view.tm, &changed, NULL, &e), 0);
	assert_false(changed);
	victim_order(&v, 'r'); /* binds the lazy GOT entry */
	assert_int_equal(modules_changed(&view.modules, &view.tm, &changed, NULL, &e), 0);
	assert_true(changed);
	view_close(&view);
	victim_end(&v);
}

static void test_modules_read_of_static_programs(void **state)
{
	static const char *const programs[] = { "victim_static", "victim_static_pie" };
	struct victim v;
	struct view view;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		victim_start(&v, programs[i], NULL, NULL);
		view_open(&view, v.pid, true);
		assert_true(view.modules.is_static && view.modules.consistent);
		assert_non_null(modules_main(&view.modules));
		assert_non_null(strstr(modules_main(&view.modules)->path, programs[i]));
		assert_int_equal(view.modules.count, 2); /* with the vdso */
		assert_int_equal(view.libc.kind, LIBC_STATIC);
		assert_false(libc_loads_payload(&view.libc));
		assert_int_equal(view.plans.entry_count, 0);
		view_close(&view);
		victim_end(&v);
	}
}

/* ld.so run by name: the kernel's AT_PHDR is that of ld.so. */
static void test_modules_read_of_a_loader_run_by_name(void **state)
{
	struct victim v;
	struct view view;

	(void)state;
	if (access("/lib64/ld-linux-x86-64.so.2", X_OK))
		skip();
	victim_start(&v, "/lib64/ld-linux-x86-64.so.2", VICTIM_DIR "/victim_now", NULL);
	view_open(&view, v.pid, true);
	assert_ptr_equal(modules_main(&view.modules), view_module(&view, "victim_now"));
	assert_true(view.plans.entry_count > 0);
	view_close(&view);
	victim_end(&v);
}

static bool is_zero(const struct view *view, uint64_t address, uint64_t bytes)
{
	static const char zeros[4096];
	char now[4096];
	struct err e;

	assert_true(bytes <= sizeof now);
	assert_int_equal(target_read(&view->tm, address, now, bytes, &e), 0);
	return memcmp(now, zeros, bytes) == 0;
}

static void poke(const struct victim *v, uint64_t address)
{
	char path[40];

	snprintf(path, sizeof path, "/proc/%d/mem", v->pid);
	int mem = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(mem, "x", 1, (off_t)address), 1);
	close(mem);
}

static int find(struct stub_place *place, const struct view *view, uint64_t bytes, uint64_t frame)
{
	struct err e;

	return cave_find(place, &view->modules, &view->tm, &view->maps, bytes, frame, &e);
}

static void test_cave_find_gives_zeros_in_text(void **state)
{
	struct victim v;
	struct view view;
	struct stub_place place, other;

	(void)state;
	victim_start(&v, "victim_now", NULL, NULL);
	view_open(&view, v.pid, false);
	assert_int_equal(find(&place, &view, 512, 0), 0);
	assert_true(place.code % 16 == 0 && place.frame == 0);
	assert_true(modules_find(&view.modules, (place.code - 16) & -16ull, true));
	assert_true(is_zero(&view, place.code, 512));
	assert_true(maps_find(&view.maps, place.code)->prot & PROT_EXEC);
	assert_int_equal(find(&place, &view, 4096, 0), -ENOSPC);
	/* What is behind the zeros, as where a program waits at its entry, is left out. */
	assert_int_equal(find(&place, &view, 512, 0), 0);
	poke(&v, place.code + 511);
	assert_int_equal(find(&other, &view, 511, 0), 0);
	assert_int_equal(other.code, place.code);
	assert_int_equal(find(&other, &view, 512, 0), 0);
	assert_int_not_equal(other.code, place.code);
	view_close(&view);
	victim_end(&v);
}

static bool may_be_frame(const struct view *view, uint64_t address, uint64_t bytes)
{
	return cave_holds_frame(&view->modules, &view->tm, &view->maps, address, bytes);
}

/* Behind the code where both fit, else in any padding that nobody writes to. */
static void test_cave_find_parts_the_frame_from_the_code(void **state)
{
	const struct mapping *m;
	struct stub_place place;
	struct victim v;
	struct view view;
	uint64_t frame = 4096;
	struct err e;

	(void)state;
	victim_start(&v, "victim_now", NULL, NULL);
	view_open(&view, v.pid, false);
	assert_int_equal(find(&place, &view, 100, 64), 0);
	assert_int_equal(place.frame, place.code + 112);
	/* The largest that fits somewhere, but behind no code of that size. */
	for (uint64_t code = 512; frame >= 4096 && code >= 64; code -= 64)
		for (frame = 4080; frame > 64; frame -= 16)
			if (find(&place, &view, code, frame) == 0)
				break;
	assert_true(frame > 64 && place.frame);
	const uint64_t page = place.frame & ~4095ull;
	assert_true(place.code >= page + 4096 || place.code + 512 <= page || place.frame >= place.code);
	assert_true(is_zero(&view, place.code, 64) && is_zero(&view, place.frame, frame));
	m = maps_find(&view.maps, place.frame);
	assert_true(m && !(m->prot & PROT_WRITE) && !m->shared);
	assert_true(may_be_frame(&view, place.frame, frame));
	assert_false(may_be_frame(&view, place.frame + 8, frame - 16));
	assert_false(may_be_frame(&view, view.modules.list[0].exec_start & ~15ull, 64));
	assert_false(may_be_frame(&view, 0, 64));
	/* Of a stub that is there, and has none yet: not on it. */
	place.frame = 0;
	assert_int_equal(cave_find_frame(&place, &view.modules, &view.tm, &view.maps, 512, 64, &e), 0);
	assert_true(place.frame >= place.code + 512 || place.frame + 64 <= place.code);
	view_close(&view);
	victim_end(&v);
}

static bool may_be_written(const struct view *view, uint64_t address)
{
	const struct mapping *m = maps_find(&view->maps, address);

	return !m || m->prot & PROT_WRITE;
}

/* What is writable belongs to others, zero or not; what is protected after relocation is nobody's in front of it. */
static void test_cave_holds_no_frame_in_writable_pages(void **state)
{
	unsigned in_front = 0;
	struct victim v;
	struct view view;

	(void)state;
	victim_start(&v, "victim_now", NULL, NULL);
	view_open(&view, v.pid, false);
	for (size_t k = 0; k < view.modules.count; k++) {
		const struct elf_module *m = &view.modules.list[k];
		for (size_t i = 0; i < m->phdr_count; i++) {
			const uint64_t start = m->bias + m->phdrs[i].p_vaddr, end = start + m->phdrs[i].p_memsz;
			if (m->phdrs[i].p_type != PT_LOAD || !(m->phdrs[i].p_flags & PF_W))
				continue;
			assert_false(may_be_frame(&view, (end + 15) & ~15ull, 16));
			assert_false(may_be_frame(&view, start & ~15ull, 16));
			if (start % 4096 < 32)
				continue;
			in_front += !may_be_written(&view, start - 32);
			assert_int_equal(may_be_frame(&view, (start - 16) & ~15ull, 16),
			                 !may_be_written(&view, start - 32));
		}
	}
	assert_true(in_front);
	view_close(&view);
	victim_end(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modules_read_finds_all),
		cmocka_unit_test(test_libc_find_on_glibc),
		cmocka_unit_test(test_loader_locks_are_seen),
		cmocka_unit_test(test_modules_changed_sees_dlopen),
		cmocka_unit_test(test_modules_watch_word_sees_a_fresh_image),
		cmocka_unit_test(test_modules_read_of_static_programs),
		cmocka_unit_test(test_modules_read_of_a_loader_run_by_name),
		cmocka_unit_test(test_cave_find_gives_zeros_in_text),
		cmocka_unit_test(test_cave_find_parts_the_frame_from_the_code),
		cmocka_unit_test(test_cave_holds_no_frame_in_writable_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
