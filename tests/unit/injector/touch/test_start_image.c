/* SPDX-License-Identifier: MIT */
/* What is read of a program in the moment after execve: a stack and headers that are made up, as a file is its memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "touch/start/start_image.h"

#define STACK 0x8000u
#define PROGRAM 0x2000u
#define BIAS (PROGRAM - 0x1000u)
#define MEMORY 0x10000u
#define CODE_BYTES 0x123u
#define LOADER 0xa000u
#define LOADER_CODE 0x700u
#define ARGUMENTS 700u /* more than are read at once */

struct layout {
	int mem;
	uint64_t words[2 * ARGUMENTS];
	unsigned count;
	Elf64_Phdr headers[3];
};

static void push(struct layout *l, uint64_t word)
{
	l->words[l->count++] = word;
}

static void push_pair(struct layout *l, uint64_t type, uint64_t value)
{
	push(l, type);
	push(l, value);
}

static void make(struct layout *l, unsigned arguments)
{
	*l = (struct layout){ .mem = memfd_create("program", MFD_CLOEXEC) };
	push(l, arguments);
	for (unsigned i = 0; i < arguments; i++)
		push(l, 1);
	push(l, 0);
	push(l, 1);
	push(l, 0);
	push_pair(l, AT_PHDR, PROGRAM + sizeof(Elf64_Ehdr));
	push_pair(l, AT_PHENT, sizeof l->headers[0]);
	push_pair(l, AT_PHNUM, 3);
	push_pair(l, AT_ENTRY, PROGRAM + 0x80);
	push_pair(l, AT_NULL, 0);
	l->headers[0] = (Elf64_Phdr){ .p_type = PT_INTERP };
	l->headers[1] = (Elf64_Phdr){ .p_type = PT_LOAD,
		                      .p_flags = PF_R | PF_X,
		                      .p_vaddr = 0x1000,
		                      .p_filesz = CODE_BYTES,
		                      .p_memsz = CODE_BYTES };
	l->headers[2] = (Elf64_Phdr){
		.p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_vaddr = 0x3000, .p_offset = 0x1000, .p_memsz = 0x100
	};
}

static int read_image(struct layout *l, struct start_image *image)
{
	struct err e;

	assert_int_equal(ftruncate(l->mem, MEMORY), 0);
	assert_int_equal(pwrite(l->mem, l->words, l->count * sizeof l->words[0], STACK),
	                 (ssize_t)(l->count * sizeof l->words[0]));
	assert_int_equal(pwrite(l->mem, l->headers, sizeof l->headers, PROGRAM + sizeof(Elf64_Ehdr)),
	                 (ssize_t)sizeof l->headers);
	return start_image_read(image, l->mem, STACK, &e);
}

static void test_start_image_read_finds_entry_and_padding(void **state)
{
	(void)state;
	static struct layout l;
	static const unsigned counts[] = { 1, 511, ARGUMENTS };
	struct start_image image;
	struct err e;
	uint64_t padding, word;

	for (unsigned i = 0; i < sizeof counts / sizeof counts[0]; i++) {
		make(&l, counts[i]);
		assert_int_equal(read_image(&l, &image), 0);
		assert_int_equal(image.argc, counts[i]);
		assert_int_equal(image.entry, PROGRAM + 0x80);
		assert_int_equal(pread(l.mem, &word, sizeof word, (off_t)image.entry_at), sizeof word);
		assert_int_equal(word, image.entry);
		assert_int_equal(image.program.bias, BIAS);
		assert_true(image.dynamic);
		assert_true(start_image_is_code(&image, PROGRAM + CODE_BYTES - 1));
		assert_false(start_image_is_code(&image, PROGRAM + CODE_BYTES));
		assert_int_equal(start_image_padding(&image, 100, &padding, &e), 0);
		assert_int_equal(padding, PROGRAM + 0x1000 - 112);
		assert_int_equal(start_image_padding(&image, 0x1000 - 0x130 + 1, &padding, &e), -ENOSPC);
		assert_int_equal(pwrite(l.mem, "x", 1, PROGRAM + 0x130 + 500), 1);
		assert_int_equal(start_image_padding(&image, 100, &padding, &e), -ENOSPC);
		close(l.mem);
	}
}

/* Where the program has no room behind its code, that behind its loader's is taken. */
static void test_start_image_padding_of_the_loader(void **state)
{
	(void)state;
	static struct layout l;
	const Elf64_Phdr code = {
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = LOADER_CODE, .p_memsz = LOADER_CODE
	};
	Elf64_Ehdr h = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64 },
		         .e_phoff = sizeof h,
		         .e_phentsize = sizeof code,
		         .e_phnum = 1 };
	struct start_image image;
	struct err e;
	uint64_t padding;

	for (int sound = 1; sound >= 0; sound--) {
		make(&l, 1);
		l.count -= 2;
		push_pair(&l, AT_BASE, LOADER);
		push_pair(&l, AT_NULL, 0);
		h.e_phnum = sound ? 1 : START_SEGMENTS_MAX + 1;
		assert_int_equal(pwrite(l.mem, &h, sizeof h, LOADER), sizeof h);
		assert_int_equal(pwrite(l.mem, &code, sizeof code, LOADER + sizeof h), sizeof code);
		assert_int_equal(read_image(&l, &image), 0);
		assert_int_equal(pwrite(l.mem, "x", 1, PROGRAM + CODE_BYTES + 100), 1);
		assert_int_equal(start_image_padding(&image, 100, &padding, &e), sound ? 0 : -ENOSPC);
		assert_true(!sound || padding == ((LOADER + LOADER_CODE) & ~0xfffull) + 0x1000 - 112);
		close(l.mem);
	}
}

static void test_start_image_read_refuses_what_makes_no_sense(void **state)
{
	(void)state;
	static struct layout l;
	struct start_image image;

	make(&l, 1);
	l.count -= 4; /* no entry, and no end */
	assert_int_equal(read_image(&l, &image), -ENOEXEC);
	close(l.mem);
	make(&l, 1);
	for (unsigned i = 0; i < l.count; i++)
		if (l.words[i] == AT_PHNUM && l.words[i + 1] == 3)
			l.words[i + 1] = START_SEGMENTS_MAX + 1;
	assert_int_equal(read_image(&l, &image), -ENOEXEC);
	close(l.mem);
	make(&l, 1);
	l.headers[1].p_offset = 0x1000; /* the headers are in no segment */
	assert_int_equal(read_image(&l, &image), -ENOEXEC);
	close(l.mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start_image_read_finds_entry_and_padding),
		cmocka_unit_test(test_start_image_padding_of_the_loader),
		cmocka_unit_test(test_start_image_read_refuses_what_makes_no_sense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
