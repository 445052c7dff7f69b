/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <elf.h>
#include <libdeflate.h>
#include <libelf.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "debug_unpack.h"
#include "whole_io.h"

/* A debug file as strip leaves it, made here; libelf says what its sections have and what those of the copy should
 * have. */

#define SECTIONS_MAX 16

struct made {
	uint8_t *bytes;
	size_t size;
	Elf64_Shdr sections[SECTIONS_MAX];
	unsigned count;
	char names[512];
	size_t names_bytes;
};

static uint32_t chance(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* It can be compressed, but not to nothing. */
static uint8_t *content(size_t bytes, uint32_t seed)
{
	uint8_t *text = malloc(bytes + 1);

	assert_non_null(text);
	for (size_t i = 0; i < bytes; i++)
		text[i] = (uint8_t)("etaoin shrdlu"[chance(&seed) % 13]);
	return text;
}

static void append(struct made *m, const void *bytes, size_t count)
{
	m->bytes = realloc(m->bytes, m->size + count + 1);
	assert_non_null(m->bytes);
	memcpy(m->bytes + m->size, bytes, count);
	m->size += count;
}

static Elf64_Shdr *add(struct made *m, const char *name, uint32_t type, const void *bytes, size_t count)
{
	Elf64_Shdr *section = &m->sections[m->count++];

	assert_true(m->count < SECTIONS_MAX);
	*section = (Elf64_Shdr){ .sh_name = (uint32_t)m->names_bytes,
		                 .sh_type = type,
		                 .sh_offset = m->size,
		                 .sh_size = count,
		                 .sh_addralign = 1 };
	strcpy(m->names + m->names_bytes, name);
	m->names_bytes += strlen(name) + 1;
	append(m, bytes, count);
	return section;
}

/* Whose stream is followed by so many bytes. */
static Elf64_Shdr *add_packed(struct made *m, const char *name, size_t bytes, size_t behind)
{
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);
	size_t bound = libdeflate_zlib_compress_bound(c, bytes);
	Elf64_Chdr packing = { .ch_type = ELFCOMPRESS_ZLIB, .ch_size = bytes, .ch_addralign = 1 };
	uint8_t *plain = content(bytes, (uint32_t)bytes);
	uint8_t *packed = calloc(1, sizeof packing + bound + behind);

	assert_non_null(packed);
	memcpy(packed, &packing, sizeof packing);
	size_t made = libdeflate_zlib_compress(c, plain, bytes, packed + sizeof packing, bound);
	assert_true(made > 0);
	Elf64_Shdr *section = add(m, name, SHT_PROGBITS, packed, sizeof packing + made + behind);
	section->sh_flags = SHF_COMPRESSED;
	libdeflate_free_compressor(c);
	free(plain);
	free(packed);
	return section;
}

static void begin(struct made *m)
{
	const Elf64_Phdr phdr = { .p_type = PT_LOAD, .p_vaddr = 0x1000, .p_memsz = 0x2000 };

	*m = (struct made){ .count = 1, .names_bytes = 1 };
	append(m, &(Elf64_Ehdr){ 0 }, sizeof(Elf64_Ehdr));
	append(m, &phdr, sizeof phdr);
}

/* Sections and what they are changed to after their making is in the file after this. */
static void end(struct made *m)
{
	Elf64_Ehdr head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		            .e_type = ET_DYN,
		            .e_machine = EM_X86_64,
		            .e_version = EV_CURRENT,
		            .e_phoff = sizeof head,
		            .e_ehsize = sizeof head,
		            .e_phentsize = sizeof(Elf64_Phdr),
		            .e_phnum = 1,
		            .e_shentsize = sizeof(Elf64_Shdr) };

	strcpy(m->names + m->names_bytes, ".shstrtab");
	m->sections[m->count++] = (Elf64_Shdr){ .sh_name = (uint32_t)m->names_bytes,
		                                .sh_type = SHT_STRTAB,
		                                .sh_offset = m->size,
		                                .sh_size = m->names_bytes + 10,
		                                .sh_addralign = 1 };
	append(m, m->names, m->names_bytes + 10);
	append(m, "\0\0\0\0\0\0\0", (8 - m->size % 8) % 8);
	head.e_shoff = m->size;
	head.e_shnum = (uint16_t)m->count;
	head.e_shstrndx = (uint16_t)(m->count - 1);
	append(m, m->sections, m->count * sizeof *m->sections);
	memcpy(m->bytes, &head, sizeof head);
}

/* One of the kind that distributions have. */
static void make_usual(struct made *m, size_t info_bytes)
{
	begin(m);
	add(m, ".note.gnu.build-id", SHT_NOTE, "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0abcd", 20)->sh_flags = SHF_ALLOC;
	add(m, ".text", SHT_NOBITS, "", 0)->sh_size = 123456;
	add_packed(m, ".debug_info", info_bytes, 0);
	add_packed(m, ".debug_line", info_bytes / 3 + 1, 0);
	add_packed(m, ".debug_loclists", info_bytes / 2 + 1, 0);
	add(m, ".debug_str", SHT_PROGBITS, "some\0strings", 13)->sh_flags = SHF_MERGE | SHF_STRINGS;
	add(m, ".gnu_debugaltlink", SHT_PROGBITS, "/shared\0abcd", 12);
	add(m, ".symtab", SHT_SYMTAB, (uint8_t[48]){ 0 }, 48)->sh_entsize = 24;
}

static int unpack(const void *bytes, size_t size)
{
	int fd = memfd_create("debug", MFD_CLOEXEC);

	assert_true(fd >= 0 && pwrite_all(fd, bytes, size, 0));
	int copy = debug_unpack(fd);
	close(fd);
	return copy;
}

static bool is_refused(struct made *m)
{
	end(m);
	int copy = unpack(m->bytes, m->size);
	if (copy >= 0)
		close(copy);
	free(m->bytes);
	return copy < 0;
}

static bool is_copied(struct made *m)
{
	return !is_refused(m);
}

static Elf *open_copy(int fd)
{
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);
	assert_non_null(elf);
	assert_int_equal(elf_kind(elf), ELF_K_ELF);
	return elf;
}

static void put_copied(Elf *copy, size_t number, Elf_Scn *want, const char *name)
{
	Elf64_Shdr *have = elf64_getshdr(elf_getscn(copy, number));

	assert_non_null(have);
	if (have->sh_type == SHT_NOBITS)
		return;
	assert_false(have->sh_flags & SHF_COMPRESSED);
	if (elf64_getshdr(want)->sh_flags & SHF_COMPRESSED)
		assert_int_equal(elf_compress(want, 0, 0), 1);
	Elf_Data *a = elf_rawdata(want, NULL);
	Elf_Data *b = elf_rawdata(elf_getscn(copy, number), NULL);
	assert_non_null(a);
	assert_non_null(b);
	if (a->d_size != b->d_size || memcmp(a->d_buf ? a->d_buf : "", b->d_buf ? b->d_buf : "", a->d_size) != 0)
		fail_msg("section %zu (%s) differs", number, name);
}

/* What is in the copy is what libelf finds in the file. */
static void check_copy(int fd, const void *bytes, size_t size)
{
	Elf *copy = open_copy(fd);
	uint8_t *own = malloc(size);
	size_t names = 0;
	Elf_Scn *section = NULL;

	assert_non_null(own);
	memcpy(own, bytes, size);
	Elf *file = elf_memory((char *)own, size);
	assert_non_null(file);
	assert_int_equal(elf_getshdrstrndx(file, &names), 0);
	while ((section = elf_nextscn(file, section))) {
		const char *name = elf_strptr(file, names, elf64_getshdr(section)->sh_name);
		put_copied(copy, elf_ndxscn(section), section, name ? name : "?");
	}
	elf_end(copy);
	elf_end(file);
	free(own);
}

static void test_copy_has_what_is_read(void **state)
{
	static const char *const left_out[] = { ".text", ".debug_loclists", ".symtab" };
	struct made m;

	(void)state;
	/* Small, and large enough for two threads. */
	for (size_t bytes = 3000; bytes <= 3000000; bytes *= 1000) {
		make_usual(&m, bytes);
		end(&m);
		int fd = unpack(m.bytes, m.size);
		assert_true(fd >= 0);
		check_copy(fd, m.bytes, m.size);
		Elf *copy = open_copy(fd);
		size_t names = 0;
		unsigned empty = 0;
		assert_int_equal(elf_getshdrstrndx(copy, &names), 0);
		assert_int_equal(elf64_getphdr(copy)->p_memsz, 0x2000);
		for (Elf_Scn *section = NULL; (section = elf_nextscn(copy, section));) {
			const char *name = elf_strptr(copy, names, elf64_getshdr(section)->sh_name);
			assert_non_null(name);
			if (elf64_getshdr(section)->sh_type != SHT_NOBITS)
				continue;
			assert_true(empty < 3);
			assert_string_equal(name, left_out[empty++]);
		}
		assert_int_equal(empty, 3);
		elf_end(copy);
		close(fd);
		free(m.bytes);
	}
}

static void test_no_copy_without_gain(void **state)
{
	struct made m;

	(void)state;
	begin(&m);
	add(&m, ".debug_info", SHT_PROGBITS, "plain", 5);
	assert_true(is_refused(&m));
	begin(&m);
	add_packed(&m, ".debug_loclists", 5000, 0);
	assert_true(is_refused(&m));
	assert_int_equal(unpack("", 0), -1);
	assert_int_equal(unpack("no ELF file, but a text that is longer than the head of one would be, which is some "
	                        "sixty bytes",
	                        95),
	                 -1);
}

/* libdw would look beside the file, and there is nothing beside a copy. */
static void test_no_copy_of_what_refers_to_neighbours(void **state)
{
	struct made m;

	(void)state;
	make_usual(&m, 3000);
	assert_true(is_copied(&m));
	make_usual(&m, 3000);
	add(&m, ".gnu_debugaltlink", SHT_PROGBITS, "../shared\0abcd", 14);
	assert_true(is_refused(&m));
	make_usual(&m, 3000);
	add(&m, ".debug_addr", SHT_PROGBITS, "12345678", 8);
	assert_true(is_refused(&m));
}

static Elf64_Chdr *packing_of(struct made *m, const Elf64_Shdr *section)
{
	return (Elf64_Chdr *)(void *)(m->bytes + section->sh_offset);
}

/* A section begins where an address of this kind may stand. */
static void align(struct made *m)
{
	append(m, "\0\0\0\0\0\0\0", (8 - m->size % 8) % 8);
}

static void test_no_copy_of_a_section_that_libelf_refuses(void **state)
{
	struct made m;

	(void)state;
	for (int damage = 0; damage < 8; damage++) {
		make_usual(&m, 3000);
		align(&m);
		Elf64_Shdr *section = add_packed(&m, ".debug_abbrev", 5000, damage == 1);
		Elf64_Chdr *packing = packing_of(&m, section);
		switch (damage) {
		case 2: packing->ch_size++; break;
		case 3: packing->ch_size--; break;
		case 4: packing->ch_size = UINT64_MAX; break;
		case 5: packing->ch_type = 2; break;
		case 6: packing->ch_addralign = 3; break;
		case 7: m.bytes[m.size - 1] ^= 1; break; /* of the checksum */
		default: break;
		}
		if (damage)
			assert_true(is_refused(&m));
		else
			assert_true(is_copied(&m));
	}
}

/* A small file whose sections are all of it would make a large copy. */
static void test_no_copy_of_sections_that_overlap(void **state)
{
	struct made m;

	(void)state;
	make_usual(&m, 30000);
	Elf64_Shdr *section = add(&m, ".debug_types", SHT_PROGBITS, "", 0);
	section->sh_offset = 0;
	section->sh_size = m.size;
	assert_true(is_refused(&m));
}

/* What is written behind the limit ends a program. */
static void test_no_copy_above_the_limit_of_files(void **state)
{
	struct rlimit before, small;
	struct made m;

	(void)state;
	make_usual(&m, 100000);
	end(&m);
	int file = memfd_create("debug", MFD_CLOEXEC);
	assert_true(file >= 0 && pwrite_all(file, m.bytes, m.size, 0));
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 100000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	int refused = debug_unpack(file);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(refused, -1);
	int copy = debug_unpack(file);
	assert_true(copy >= 0);
	close(copy);
	close(file);
	free(m.bytes);
}

static void check_damaged(const uint8_t *bytes, size_t size, unsigned *copies)
{
	int fd = unpack(bytes, size);

	if (fd < 0)
		return;
	++*copies;
	check_copy(fd, bytes, size);
	close(fd);
}

static void test_damage_gives_no_other_content(void **state)
{
	struct made m;
	uint32_t seed = 7;
	unsigned copies = 0;

	(void)state;
	make_usual(&m, 600);
	end(&m);
	for (size_t size = 0; size < m.size; size += 13)
		check_damaged(m.bytes, size, &copies);
	assert_int_equal(copies, 0); /* the table of sections is at the end */
	for (int i = 0; i < 4000; i++) {
		/* Half of the changes meet the table and the head. */
		size_t table = m.count * sizeof *m.sections;
		size_t at = i % 4 == 0   ? chance(&seed) % sizeof(Elf64_Ehdr)
		            : i % 4 == 1 ? m.size - table + chance(&seed) % table
		                         : chance(&seed) % m.size;
		uint8_t old = m.bytes[at];
		m.bytes[at] = (uint8_t)chance(&seed);
		check_damaged(m.bytes, m.size, &copies);
		m.bytes[at] = old;
	}
	assert_true(copies > 400 && copies < 3600);
	free(m.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copy_has_what_is_read),
		cmocka_unit_test(test_no_copy_without_gain),
		cmocka_unit_test(test_no_copy_of_what_refers_to_neighbours),
		cmocka_unit_test(test_no_copy_of_a_section_that_libelf_refuses),
		cmocka_unit_test(test_no_copy_of_sections_that_overlap),
		cmocka_unit_test(test_no_copy_above_the_limit_of_files),
		cmocka_unit_test(test_damage_gives_no_other_content),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
