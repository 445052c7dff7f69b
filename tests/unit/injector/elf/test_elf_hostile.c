/* SPDX-License-Identifier: MIT */
/*
 * Images that lie: a library's memory, copied into this process and damaged, is read as a module with this process as
 * the target. No outcome is right but one without a crash; the sanitizers watch.
 */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arch/code_scan.h"
#include "unwind/unwind_compile.h"

struct image {
	uint8_t *copy;
	const uint8_t *good;
	size_t bytes;
	struct target_memory tm;
	struct maps maps;
};

/* libc as it lies in memory, so with a relocated dynamic section that points into the original: made relative. */
static void image_open(struct image *im)
{
	struct view view;
	struct err e;

	view_open(&view, getpid(), false);
	const struct elf_module *m = view.libc.module;
	im->bytes = m->end - m->start;
	im->copy = mmap(NULL, im->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *good = calloc(1, im->bytes);
	assert_ptr_not_equal(im->copy, MAP_FAILED);
	assert_non_null(good);
	for (size_t i = 0; i < m->phdr_count; i++) {
		const Elf64_Phdr *p = &m->phdrs[i];
		if (p->p_type == PT_LOAD)
			assert_int_equal(target_read(&view.tm, m->bias + p->p_vaddr, good + p->p_vaddr, p->p_memsz, &e),
			                 0);
	}
	Elf64_Dyn *d = (Elf64_Dyn *)(void *)(good + (m->dynamic - m->bias));
	for (; d->d_tag != DT_NULL; d++)
		if (d->d_un.d_ptr >= m->start && d->d_un.d_ptr < m->end)
			d->d_un.d_ptr -= m->bias;
	im->good = good;
	memcpy(im->copy, good, im->bytes);
	view_close(&view);
	assert_int_equal(target_memory_open(&im->tm, getpid(), &e), 0);
	assert_int_equal(maps_read(&im->maps, "/proc/self/maps", &e), 0);
}

static void image_close(struct image *im)
{
	munmap(im->copy, im->bytes);
	free((void *)(uintptr_t)im->good);
	maps_free(&im->maps);
	target_memory_close(&im->tm);
}

/* Everything that is done with a module. */
static int use(struct image *im)
{
	struct elf_module m;
	struct elf_symbol s;
	struct err e;
	Elf64_Rela *relas;
	size_t count;
	int r = elf_module_read(&m, &im->tm, &im->maps, (uint64_t)(uintptr_t)im->copy, 0, "copy", &e);

	if (r)
		return r;
	elf_module_find(&m, "malloc", "GLIBC_2.2.5", &s);
	elf_module_find(&m, "free", NULL, &s);
	elf_module_defines_ifunc(&m, "memcpy");
	for (uint32_t i = 0; i < m.symbol_count; i += 97) {
		assert_non_null(elf_module_symbol_name(&m, i));
		elf_module_symbol_version(&m, i);
	}
	if (!elf_module_relocations(&m, &im->tm, &m.jmprel, &relas, &count, &e))
		free(relas);
	elf_module_done(&m);
	return 0;
}

static void test_elf_module_read_of_a_good_copy(void **state)
{
	struct image im;
	struct elf_module m;
	struct elf_symbol s;
	struct err e;

	(void)state;
	image_open(&im);
	assert_int_equal(elf_module_read(&m, &im.tm, &im.maps, (uint64_t)(uintptr_t)im.copy, 0, "copy", &e), 0);
	assert_true(elf_module_find(&m, "malloc", NULL, &s));
	assert_true(m.symbol_count > 1000 && m.jmprel.bytes && m.build_id_bytes);
	elf_module_done(&m);
	image_close(&im);
}

static void test_elf_module_read_survives_damaged_headers(void **state)
{
	struct image im;

	(void)state;
	image_open(&im);
	srand(3);
	for (unsigned round = 0; round < 1500; round++) {
		memcpy(im.copy, im.good, 1024);
		for (unsigned k = 0; k < 1 + round % 6; k++)
			im.copy[rand() % 1024] = (uint8_t)(round % 2 ? 0xff : rand());
		use(&im);
	}
	image_close(&im);
}

static void test_elf_module_read_survives_damaged_tables(void **state)
{
	struct image im;
	struct elf_module m;
	struct err e;

	(void)state;
	image_open(&im);
	assert_int_equal(elf_module_read(&m, &im.tm, &im.maps, (uint64_t)(uintptr_t)im.copy, 0, "copy", &e), 0);
	const uint64_t places[] = { m.dynamic,        m.dynamic,        m.dynamic,     m.gnu_hash,
		                    m.versym,         m.verdef,         m.verneed,     m.symtab.address,
		                    m.strtab.address, m.jmprel.address, m.rela.address };
	uint64_t base = (uint64_t)(uintptr_t)im.copy;
	elf_module_done(&m);
	srand(4);
	for (unsigned round = 0; round < 600; round++) {
		uint64_t place = places[round % (sizeof places / sizeof places[0])];
		if (!place)
			continue;
		size_t at = (size_t)(place - base);
		for (unsigned k = 0; k < 1 + round % 8; k++)
			im.copy[at + (size_t)rand() % 400] = (uint8_t)(round % 2 ? 0xff : rand());
		use(&im);
		memcpy(im.copy + at, im.good + at, 400);
	}
	image_close(&im);
}

/* Limits of types, and of the image. */
static uint64_t odd_number(const struct image *im, uint64_t old)
{
	const uint64_t base = (uint64_t)(uintptr_t)im->copy;
	const uint64_t numbers[] = { 0,
		                     1,
		                     7,
		                     UINT16_MAX,
		                     INT32_MAX,
		                     UINT32_MAX,
		                     1ull << 32,
		                     1ull << 47,
		                     INT64_MAX,
		                     1ull << 63,
		                     UINT64_MAX,
		                     UINT64_MAX - base,
		                     UINT64_MAX - 4095,
		                     base,
		                     base + im->bytes,
		                     im->bytes,
		                     im->bytes - 1,
		                     old + 1,
		                     old - 1,
		                     old + 4096,
		                     old * 2,
		                     old << 32,
		                     (uint64_t)rand() };

	return numbers[(size_t)rand() % (sizeof numbers / sizeof numbers[0])];
}

/* Whole words of the headers and tables, whose values go together with others, get such numbers; with the budget of a
 * session, and refused beyond it. */
static void test_elf_module_read_survives_odd_numbers(void **state)
{
	struct budget budget;
	struct image im;
	struct elf_module m;
	struct err e;

	(void)state;
	image_open(&im);
	const uint64_t base = (uint64_t)(uintptr_t)im.copy;
	assert_int_equal(elf_module_read(&m, &im.tm, &im.maps, base, 0, "copy", &e), 0);
	const uint64_t places[] = { base,      base + sizeof(Elf64_Ehdr), m.dynamic,        m.gnu_hash,    m.verdef,
		                    m.verneed, m.symtab.address,          m.jmprel.address, m.rela.address };
	elf_module_done(&m);
	im.tm.budget = &budget;
	srand(5);
	for (unsigned round = 0; round < 3000; round++) {
		const uint64_t place = places[round % (sizeof places / sizeof places[0])];
		if (!place)
			continue;
		const size_t start = (size_t)(place - base), width = (size_t)2 << rand() % 3;
		for (unsigned k = 0; k < 1 + round % 3; k++) {
			uint64_t old = 0, number;
			const size_t at = start + (size_t)rand() % (512 / width) * width;
			memcpy(&old, im.copy + at, width);
			number = odd_number(&im, old);
			memcpy(im.copy + at, &number, width);
		}
		budget_start(&budget, BUDGET_MODULES_BYTES, BUDGET_MODULES_WORK);
		use(&im);
		memcpy(im.copy + start, im.good + start, 512);
	}
	image_close(&im);
}

static void test_elf_module_read_names_the_reason(void **state)
{
	struct image im;
	struct elf_module m;
	struct err e;
	Elf64_Ehdr *h;

	(void)state;
	image_open(&im);
	h = (Elf64_Ehdr *)(void *)im.copy;
	uint64_t base = (uint64_t)(uintptr_t)im.copy;
	h->e_ident[EI_CLASS] = ELFCLASS32;
	assert_int_equal(elf_module_read(&m, &im.tm, &im.maps, base, 0, NULL, &e), -ENOEXEC);
	assert_non_null(strstr(e.text, "x32"));
	h->e_machine = EM_386;
	assert_int_equal(elf_module_read(&m, &im.tm, &im.maps, base, 0, NULL, &e), -ENOEXEC);
	assert_non_null(strstr(e.text, "32-bit"));
	memcpy(im.copy, im.good, 64);
	h->e_machine = h->e_machine == EM_AARCH64 ? EM_X86_64 : EM_AARCH64;
	assert_int_equal(elf_module_read(&m, &im.tm, &im.maps, base, 0, NULL, &e), -ENOEXEC);
	memcpy(im.copy, im.good, 64);
	assert_int_equal(elf_module_read(&m, &im.tm, &im.maps, base, base + 8, NULL, &e), -ENOEXEC);
	assert_int_equal(elf_module_read(&m, &im.tm, &im.maps, 16, 0, NULL, &e), -EFAULT);
	image_close(&im);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_elf_module_read_of_a_good_copy),
		cmocka_unit_test(test_elf_module_read_survives_damaged_headers),
		cmocka_unit_test(test_elf_module_read_survives_damaged_tables),
		cmocka_unit_test(test_elf_module_read_survives_odd_numbers),
		cmocka_unit_test(test_elf_module_read_names_the_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
