/* SPDX-License-Identifier: MIT */
/* What is mapped for the payload's image, and which images are refused. Mapping itself: test_load.c. */
#include "touch/remote/image_map.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "arch/elf_machine.h"
#include "payload_image.h"

struct copy {
	unsigned char *bytes;
	size_t size;
	Elf64_Ehdr *header;
	Elf64_Phdr *phdrs;
};

static struct copy copy_payload(void)
{
	struct copy c = { .size = (size_t)(payload_image_end - payload_image) };

	c.bytes = malloc(c.size);
	assert_non_null(c.bytes);
	memcpy(c.bytes, payload_image, c.size);
	c.header = (void *)c.bytes;
	c.phdrs = (void *)(c.bytes + c.header->e_phoff);
	return c;
}

static Elf64_Phdr *segment(struct copy *c, uint32_t type, uint32_t flags)
{
	for (unsigned i = 0; i < c->header->e_phnum; i++)
		if (c->phdrs[i].p_type == type && (c->phdrs[i].p_flags & flags) == flags)
			return &c->phdrs[i];
	fail_msg("no segment of type %u", type);
	return NULL;
}

static void refuses(struct copy *c, const char *why)
{
	struct image_layout l;
	struct err e;

	assert_int_equal(image_layout(&l, c->bytes, c->size, &e), -ENOEXEC);
	if (why && !strstr(e.text, why))
		fail_msg("not refused for \"%s\" but: %s", why, e.text);
	free(c->bytes);
}

static void test_image_layout_of_the_payload(void **state)
{
	struct copy c = copy_payload();
	const Elf64_Phdr *data = segment(&c, PT_LOAD, PF_W), *relro = segment(&c, PT_GNU_RELRO, 0);
	struct image_layout l;
	struct err e;

	(void)state;
	if (image_layout(&l, c.bytes, c.size, &e))
		fail_msg("%s", e.text);
	assert_int_equal(l.bytes, (data->p_vaddr + data->p_memsz + 4095) & ~4095ull);
	assert_int_equal(l.code_end, segment(&c, PT_LOAD, PF_X)->p_memsz);
	assert_true(l.word_count > 0);
	assert_int_equal(l.zero_start, data->p_vaddr + data->p_filesz);
	assert_true(l.zero_end == l.bss_start && l.bss_end == l.bytes && l.bss_start % 4096 == 0);
	for (unsigned i = 0; i < l.piece_count; i++) {
		assert_true(l.pieces[i].start % 4096 == 0 && l.pieces[i].end % 4096 == 0);
		assert_false(l.pieces[i].prot & PROT_WRITE && l.pieces[i].prot & PROT_EXEC);
		/* RELRO is never writable, the code is, of course, not either. */
		assert_false(l.pieces[i].prot & PROT_WRITE && l.pieces[i].start < relro->p_vaddr + relro->p_memsz);
	}
	free(c.bytes);
}

static void test_image_layout_refuses_what_takes_a_loader(void **state)
{
	struct copy c = copy_payload();

	(void)state;
	segment(&c, PT_NOTE, 0)->p_type = PT_TLS;
	refuses(&c, "thread-local");
	c = copy_payload();
	segment(&c, PT_LOAD, PF_W)->p_offset -= 4096;
	refuses(&c, "elsewhere");
	c = copy_payload();
	segment(&c, PT_LOAD, PF_W)->p_flags |= PF_X;
	refuses(&c, "unknown kind");
	c = copy_payload();
	segment(&c, PT_LOAD, PF_W)->p_filesz = UINT64_MAX;
	refuses(&c, NULL);
	c = copy_payload();
	c.header->e_phoff = UINT64_MAX - 8;
	refuses(&c, "program headers");
	c = copy_payload();
	c.header->e_machine = EM_S390;
	refuses(&c, "no shared object");
}

static void test_image_layout_refuses_other_relocations(void **state)
{
	struct copy c = copy_payload();
	Elf64_Dyn *d = (void *)(c.bytes + segment(&c, PT_DYNAMIC, 0)->p_offset);
	Elf64_Rela *rela = NULL;

	(void)state;
	for (; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_RELA)
			rela = (void *)(c.bytes + d->d_un.d_ptr);
	assert_non_null(rela);
	rela->r_info = ELF64_R_INFO(1, RELOCATION_GLOB_DAT);
	refuses(&c, "relocations");
	c = copy_payload();
	d = (void *)(c.bytes + segment(&c, PT_DYNAMIC, 0)->p_offset);
	d->d_tag = DT_NEEDED;
	refuses(&c, "dynamic section");
}

/* No byte of the first page, and no length of the file, makes it read outside. */
static void test_image_layout_of_damaged_images(void **state)
{
	struct copy c = copy_payload();
	struct image_layout l;
	struct err e;

	(void)state;
	for (size_t size = 0; size < c.size; size += size < 512 ? 1 : 997) {
		unsigned char *cut = malloc(size + 1);
		assert_non_null(cut);
		memcpy(cut, c.bytes, size);
		(void)!image_layout(&l, cut, size, &e);
		free(cut);
	}
	for (size_t at = 0; at < 1024; at++)
		for (unsigned bit = 0; bit < 8; bit++) {
			c.bytes[at] ^= (unsigned char)(1u << bit);
			(void)!image_layout(&l, c.bytes, c.size, &e);
			c.bytes[at] ^= (unsigned char)(1u << bit);
		}
	free(c.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_image_layout_of_the_payload),
		cmocka_unit_test(test_image_layout_refuses_what_takes_a_loader),
		cmocka_unit_test(test_image_layout_refuses_other_relocations),
		cmocka_unit_test(test_image_layout_of_damaged_images),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
