/* SPDX-License-Identifier: MIT */
/* Compiled rows against libdw's own interpreter, on libraries and programs of this machine; and damaged input. */
#include "fixture.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unwind/unwind_compile.h"

struct image {
	int fd;
	Elf *elf;
	uint8_t *data;
	struct unwind_source source;
};

static bool image_open(struct image *im, const char *path)
{
	size_t names, phdrs;

	memset(im, 0, sizeof *im);
	elf_version(EV_CURRENT);
	im->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (im->fd < 0)
		return false;
	im->elf = elf_begin(im->fd, ELF_C_READ, NULL);
	assert_non_null(im->elf);
	assert_int_equal(elf_getshdrstrndx(im->elf, &names), 0);
	for (Elf_Scn *s = elf_nextscn(im->elf, NULL); s; s = elf_nextscn(im->elf, s)) {
		GElf_Shdr h;
		assert_non_null(gelf_getshdr(s, &h));
		if (strcmp(elf_strptr(im->elf, names, h.sh_name), ".eh_frame"))
			continue;
		Elf_Data *d = elf_rawdata(s, NULL);
		/* A copy of the exact size, so that the sanitizer sees every step over its end. */
		im->data = malloc(d->d_size);
		assert_non_null(im->data);
		memcpy(im->data, d->d_buf, d->d_size);
		im->source = (struct unwind_source){ .data = im->data, .bytes = d->d_size, .address = h.sh_addr };
	}
	assert_non_null(im->data);
	assert_int_equal(elf_getphdrnum(im->elf, &phdrs), 0);
	for (size_t i = 0; i < phdrs; i++) {
		GElf_Phdr p;
		assert_non_null(gelf_getphdr(im->elf, (int)i, &p));
		if (p.p_type != PT_LOAD || !(p.p_flags & PF_X))
			continue;
		if (im->source.exec_end == 0)
			im->source.exec_start = p.p_vaddr;
		im->source.exec_end = p.p_vaddr + p.p_memsz;
	}
	return true;
}

static void image_close(struct image *im)
{
	free(im->data);
	elf_end(im->elf);
	close(im->fd);
}

#ifdef __x86_64__
#define LIBRARIES "/lib/x86_64-linux-gnu/"
#define LOADER "/lib64/ld-linux-x86-64.so.2"

/* The rule word by what libdw says. */
static uint32_t expected_rule(Dwarf_Frame *frame)
{
	Dwarf_Op memory[3], *ops;
	size_t count;
	bool signal_frame;
	unsigned kind = UNWIND_UNSUPPORTED, rbp = UNWIND_FP_LOST;
	int64_t n = 0;

	int ra = dwarf_frame_info(frame, NULL, NULL, &signal_frame);
	assert_int_equal(dwarf_frame_register(frame, ra, memory, &ops, &count), 0);
	if (count == 0 && ops == memory)
		return UNWIND_END;
	bool usual = count == 2 && ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_plus_uconst &&
	             (int64_t)ops[1].number == -8;
	assert_int_equal(dwarf_frame_cfa(frame, &ops, &count), 0);
	if (signal_frame && count == 2 && ops[0].atom == DW_OP_breg7 && ops[0].number == 160 &&
	    ops[1].atom == DW_OP_deref)
		return UNWIND_SIGNAL;
	if (count == 1 && ops[0].atom == DW_OP_bregx && (ops[0].number == 7 || ops[0].number == 6)) {
		/* How libdw says register + offset. */
		kind = ops[0].number == 7 ? UNWIND_SP : UNWIND_FP;
		n = (int64_t)ops[0].number2;
	} else if (count == 1 && (ops[0].atom == DW_OP_breg7 || ops[0].atom == DW_OP_breg6)) {
		kind = ops[0].atom == DW_OP_breg7 ? UNWIND_SP : UNWIND_FP;
		n = (int64_t)ops[0].number;
	} else if (count == 2 && ops[1].atom == DW_OP_deref &&
	           (ops[0].atom == DW_OP_breg7 || ops[0].atom == DW_OP_breg6)) {
		kind = ops[0].atom == DW_OP_breg7 ? UNWIND_AT_SP : UNWIND_AT_FP;
		n = (int64_t)ops[0].number;
	} else if (count == 3 && ops[0].atom == DW_OP_breg7 && ops[1].atom == DW_OP_deref &&
	           ops[2].atom == DW_OP_plus_uconst && ops[2].number == 8) {
		kind = UNWIND_AT_SP_8;
		n = (int64_t)ops[0].number;
	}
	/* Frames of a mebibyte and more (one function of redis-server) do not fit a rule word. */
	if (kind == UNWIND_UNSUPPORTED || !usual || n % 8 || n < UNWIND_N_MIN_BYTES || n > UNWIND_N_MAX_BYTES)
		return UNWIND_UNSUPPORTED;
	assert_int_equal(dwarf_frame_register(frame, 6, memory, &ops, &count), 0);
	if (count == 0)
		rbp = ops == memory ? UNWIND_FP_LOST : UNWIND_FP_SAME;
	else if (count == 2 && ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_plus_uconst &&
	         (int64_t)ops[1].number < 0 && (int64_t)ops[1].number >= -8 * (int64_t)UNWIND_FP_MAX)
		rbp = (unsigned)(-(int64_t)ops[1].number / 8);
	else if (count == 1 && ops[0].atom == DW_OP_breg6 && ops[0].number == 0)
		rbp = UNWIND_FP_AT_FP;
	return UNWIND_RULE(kind, n, rbp);
}
#else
#define LIBRARIES "/lib/aarch64-linux-gnu/"
#define LOADER "/lib/ld-linux-aarch64.so.1"

/* So many bytes below the CFA; 0: not saved there. same: the register is as it was. */
static uint64_t below_cfa(Dwarf_Frame *frame, int number, bool *same)
{
	Dwarf_Op memory[3], *ops;
	size_t count;

	assert_int_equal(dwarf_frame_register(frame, number, memory, &ops, &count), 0);
	*same = count == 0 && ops != memory;
	return count == 2 && ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_plus_uconst
	               ? (uint64_t) - (int64_t)ops[1].number
	               : 0;
}

/* The rule word by what libdw says. */
static uint32_t expected_rule(Dwarf_Frame *frame)
{
	Dwarf_Op memory[3], *ops;
	size_t count;
	bool same_link, same_fp, signal_frame;

	int ra = dwarf_frame_info(frame, NULL, NULL, &signal_frame);
	assert_int_equal(dwarf_frame_register(frame, ra, memory, &ops, &count), 0);
	if (count == 0 && ops == memory)
		return UNWIND_END;
	if (signal_frame)
		return UNWIND_SIGNAL;
	const uint64_t link = below_cfa(frame, 30, &same_link), fp = below_cfa(frame, 29, &same_fp);
	assert_int_equal(dwarf_frame_cfa(frame, &ops, &count), 0);
	if (count != 1 || ops[0].atom != DW_OP_bregx || (ops[0].number != 31 && ops[0].number != 29) ||
	    (int64_t)ops[0].number2 > UNWIND_N_MAX_BYTES || ops[0].number2 % 8)
		return UNWIND_UNSUPPORTED;
	const int64_t n = (int64_t)ops[0].number2;
	const bool by_sp = ops[0].number == 31;
	if (fp > 8 * UNWIND_FP_MAX && fp == ops[0].number2 && fp == link + 8)
		return UNWIND_RULE(by_sp ? UNWIND_PAIR_SP : UNWIND_PAIR_FP, n, UNWIND_FP_AT_FP);
	if (fp > 8 * UNWIND_FP_MAX || link > 8 * UNWIND_FP_MAX)
		return UNWIND_UNSUPPORTED;
	if (fp && link && fp == link + 8)
		return UNWIND_RULE(by_sp ? UNWIND_PAIR_SP : UNWIND_PAIR_FP, n, fp / 8);
	if (same_fp && (link || same_link))
		return UNWIND_RULE(by_sp ? UNWIND_LINK_SP : UNWIND_LINK_FP, n, link / 8);
	return UNWIND_UNSUPPORTED;
}
#endif

struct tally {
	unsigned compared;
	unsigned unsupported;
	unsigned mismatches;
};

static void compare_at(const struct image *im, const struct unwind_rows *rows, Dwarf_CFI *cfi, uint32_t pc,
                       struct tally *t)
{
	Dwarf_Frame *frame = NULL;
	uint32_t ours = unwind_rows_find(rows, pc), theirs = UNWIND_NONE;

	if (dwarf_cfi_addrframe(cfi, im->source.exec_start + pc, &frame) == 0)
		theirs = expected_rule(frame);
	free(frame);
	t->compared++;
	t->unsupported += UNWIND_KIND(ours) == UNWIND_UNSUPPORTED;
	if (ours != theirs && t->mismatches++ < 5)
		print_message("  pc %llx: ours %08x, libdw %08x\n", (unsigned long long)(im->source.exec_start + pc),
		              ours, theirs);
}

static void check_file(const char *path)
{
	struct image im;
	struct unwind_rows rows;
	struct tally t = { 0 };
	struct err e;
	uint64_t census[16];

	if (!image_open(&im, path)) {
		print_message("  %s is not installed: passed over\n", path);
		return;
	}
	assert_int_equal(unwind_compile(&rows, &im.source, &e), 0);
	assert_int_equal(rows.damaged, 0);
	assert_true(rows.count > 0 && rows.pc[0] == 0);
	Dwarf_CFI *cfi = dwarf_getcfi_elf(im.elf);
	assert_non_null(cfi);
	uint32_t length = (uint32_t)(im.source.exec_end - im.source.exec_start);
	uint32_t step = rows.count / 20000 + 1;
	for (uint32_t i = 0; i < rows.count; i++) {
		if (i)
			assert_true(rows.pc[i] > rows.pc[i - 1] && rows.rule[i] != rows.rule[i - 1]);
		if (i % step)
			continue;
		uint32_t end = i + 1 < rows.count ? rows.pc[i + 1] : length;
		compare_at(&im, &rows, cfi, rows.pc[i], &t);
		compare_at(&im, &rows, cfi, end - 1, &t);
		compare_at(&im, &rows, cfi, rows.pc[i] + (end - rows.pc[i]) / 2, &t);
	}
	unwind_rows_census(&rows, length, census);
	print_message("  %s: %u rows, %u functions, %u places compared, %u mismatches; unsupported %.3f %% of places, "
	              "%.3f %% of code\n",
	              path, rows.count, rows.fdes, t.compared, t.mismatches, 100.0 * t.unsupported / t.compared,
	              100.0 * (double)census[UNWIND_UNSUPPORTED] / length);
	assert_int_equal(t.mismatches, 0);
	dwarf_cfi_end(cfi);
	unwind_rows_done(&rows);
	image_close(&im);
}

static void test_unwind_compile_agrees_with_libdw(void **state)
{
	static const char *const files[] = {
		LIBRARIES "libc.so.6",      LOADER,
		LIBRARIES "libstdc++.so.6", "/usr/bin/redis-server",
		"/usr/bin/python3",         LIBRARIES "libcrypto.so.3",
		"/usr/sbin/nginx",          LIBRARIES "libjemalloc.so.2",
		"/proc/self/exe",
	};

	(void)state;
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
		check_file(files[i]);
}

static void test_unwind_compile_finds_the_ends_of_stacks(void **state)
{
	struct image im;
	struct unwind_rows rows;
	struct err e;
	uint64_t census[16];

	(void)state;
	if (!image_open(&im, LIBRARIES "libc.so.6"))
		skip();
	assert_int_equal(unwind_compile(&rows, &im.source, &e), 0);
	unwind_rows_census(&rows, (uint32_t)(im.source.exec_end - im.source.exec_start), census);
#ifdef __x86_64__                               /* else it is in the vdso */
	assert_true(census[UNWIND_SIGNAL] > 0); /* __restore_rt */
#endif
	assert_true(census[UNWIND_END] > 0); /* clone, clone3 */
	unwind_rows_done(&rows);
	image_close(&im);
}

/* Random damage anywhere: no crash, and rows stay ordered and inside. */
static void test_unwind_compile_survives_damage(void **state)
{
	struct image im;
	struct unwind_rows rows;
	struct err e;

	(void)state;
	assert_true(image_open(&im, "/proc/self/exe"));
	srand(7);
	uint8_t *copy = malloc(im.source.bytes);
	assert_non_null(copy);
	for (unsigned round = 0; round < 2000; round++) {
		struct unwind_source s = im.source;
		memcpy(copy, im.data, s.bytes);
		s.data = copy;
		s.bytes = round % 3 ? s.bytes : (size_t)rand() % s.bytes;
		s.debug_frame = round % 7 == 0;
		for (unsigned k = 0; k < 1 + round % 40 && s.bytes; k++)
			copy[(size_t)rand() % s.bytes] = (uint8_t)rand();
		if (unwind_compile(&rows, &s, &e))
			continue;
		for (uint32_t i = 0; i < rows.count; i++) {
			assert_true(rows.pc[i] < s.exec_end - s.exec_start);
			assert_true(i == 0 || rows.pc[i] > rows.pc[i - 1]);
		}
		unwind_rows_done(&rows);
	}
	free(copy);
	image_close(&im);
}

static void test_unwind_compile_of_nothing(void **state)
{
	struct unwind_rows rows;
	struct unwind_source s = { .data = (const uint8_t *)"", .exec_start = 0x1000, .exec_end = 0x2000 };
	struct err e;

	(void)state;
	assert_int_equal(unwind_compile(&rows, &s, &e), 0);
	assert_int_equal(rows.count, 0);
	assert_int_equal(unwind_rows_find(&rows, 5), UNWIND_NONE);
	s.exec_end = 0x200000000ull;
	assert_int_equal(unwind_compile(&rows, &s, &e), -E2BIG);
}

/* From a process: the same rows by file and, where the file cannot be had, by memory. */
static void test_unwind_compile_module_by_file_and_memory(void **state)
{
	struct victim v;
	struct view view;
	struct unwind_rows by_file, by_memory;
	struct err e;

	(void)state;
	victim_start(&v, "victim_now", NULL, NULL);
	view_open(&view, v.pid, false);
	for (size_t i = 0; i < view.modules.count; i++) {
		const struct elf_module *m = &view.modules.list[i];
		struct module_file f, none = { m, &view.tm, -1 };

		module_file_open(&f, m, &view.tm, &view.maps);
		assert_true(f.fd >= 0 || m->is_vdso);
		assert_int_equal(unwind_compile_module(&by_file, &f, NULL, &e), 0);
		assert_int_equal(unwind_compile_module(&by_memory, &none, NULL, &e), 0);
		assert_true(by_file.count > 0);
		assert_int_equal(by_file.count, by_memory.count);
		assert_memory_equal(by_file.pc, by_memory.pc, by_file.count * 4);
		assert_memory_equal(by_file.rule, by_memory.rule, by_file.count * 4);
		unwind_rows_done(&by_file);
		unwind_rows_done(&by_memory);
		module_file_close(&f);
	}
	view_close(&view);
	victim_end(&v);
}

/* The target may end at any moment: the table's head can be read, the table itself no more. */
static void test_unwind_compile_module_that_goes_away(void **state)
{
	struct victim v;
	struct view view;
	struct err e;

	(void)state;
	victim_start(&v, "victim_now", NULL, NULL);
	view_open(&view, v.pid, false);
	for (size_t i = 0; i < view.modules.count; i++) {
		const struct elf_module *m = &view.modules.list[i];
		const struct module_file memory = { m, &view.tm, -1 };
		struct unwind_rows rows;

		/* Beyond what is mapped: the read ends as that of a process that has gone. */
		for (size_t k = 0; k < m->phdr_count; k++)
			m->phdrs[k].p_filesz += 1u << 29;
		assert_int_equal(unwind_compile_module(&rows, &memory, NULL, &e), 0);
		/* But what signal handlers return to, which is found by its instructions. */
		assert_int_equal(rows.count, m->is_vdso && rows.count ? 3 : 0);
		unwind_rows_done(&rows);
	}
	view_close(&view);
	victim_end(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unwind_compile_agrees_with_libdw),
		cmocka_unit_test(test_unwind_compile_finds_the_ends_of_stacks),
		cmocka_unit_test(test_unwind_compile_survives_damage),
		cmocka_unit_test(test_unwind_compile_of_nothing),
		cmocka_unit_test(test_unwind_compile_module_by_file_and_memory),
		cmocka_unit_test(test_unwind_compile_module_that_goes_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
