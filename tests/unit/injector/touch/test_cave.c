/* SPDX-License-Identifier: MIT */
/* Which bytes of a module are taken for unused. Images that no linker makes are files that are mapped here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "touch/remote/remote.h"

#define PAGE 4096u
#define PAGES 4u
#define BASE 0x10000u /* of the image's own addresses */
#define SEGMENTS 5u

struct image {
	uint8_t *at;
	struct elf_module module;
	struct target_memory tm;
	struct maps maps;
};

static Elf64_Phdr segment(uint64_t start, uint64_t end, uint32_t flags)
{
	return (Elf64_Phdr){ .p_type = PT_LOAD,
		             .p_flags = flags,
		             .p_offset = start,
		             .p_vaddr = BASE + start,
		             .p_filesz = end - start,
		             .p_memsz = end - start };
}

/*
 * Page 0 has the headers, page 1 code up to 0x1400, page 3 data from 0x3800 on, which are protected after relocation;
 * a segment more may be anywhere.
 */
static void open_image(struct image *im, const Elf64_Phdr *more)
{
	Elf64_Phdr list[SEGMENTS] = { segment(0, 0x400, PF_R), segment(PAGE, 0x1400, PF_R | PF_X),
		                      segment(0x3800, 0x4000, PF_R | PF_W), segment(0x3800, 0x4000, PF_R) };
	const Elf64_Ehdr header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		                    .e_type = ET_DYN,
		                    .e_machine = MACHINE_ELF,
		                    .e_phoff = sizeof header,
		                    .e_phentsize = sizeof list[0],
		                    .e_phnum = more ? SEGMENTS : SEGMENTS - 1 };
	char name[] = "/tmp/test_cave.XXXXXX";
	struct err e;

	list[3].p_type = PT_GNU_RELRO;
	if (more)
		list[4] = *more;
	int fd = mkstemp(name);
	assert_true(fd >= 0);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(ftruncate(fd, PAGES * PAGE), 0);
	assert_int_equal(pwrite(fd, &header, sizeof header, 0), sizeof header);
	assert_int_equal(pwrite(fd, list, sizeof list, sizeof header), sizeof list);
	im->at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(im->at, MAP_FAILED);
	close(fd);
	assert_int_equal(target_memory_open(&im->tm, getpid(), &e), 0);
	assert_int_equal(maps_read(&im->maps, "/proc/self/maps", &e), 0);
	assert_int_equal(elf_module_read(&im->module, &im->tm, &im->maps, (uint64_t)(uintptr_t)im->at, 0, NULL, &e), 0);
}

static void close_image(struct image *im)
{
	elf_module_done(&im->module);
	maps_free(&im->maps);
	target_memory_close(&im->tm);
	munmap(im->at, PAGES * PAGE);
}

static bool may_be_frame(const struct image *im, uint64_t offset)
{
	const struct modules m = { .list = (struct elf_module *)(uintptr_t)&im->module, .count = 1 };

	return cave_holds_frame(&m, &im->tm, &im->maps, (uint64_t)(uintptr_t)im->at + offset, 16);
}

static void test_unused_bytes_are_behind_code_and_in_front_of_data(void **state)
{
	struct image im;
	struct cave cave;

	(void)state;
	open_image(&im, NULL);
	assert_true(cave_of_module(&cave, &im.module, &im.tm, &im.maps));
	assert_int_equal(cave.address, (uint64_t)(uintptr_t)im.at + 0x1400);
	assert_int_equal(cave.bytes, 0xc00);
	assert_true(may_be_frame(&im, 0x1400) && may_be_frame(&im, 0x1ff0));
	assert_true(may_be_frame(&im, 0x3000) && may_be_frame(&im, 0x37f0));
	assert_true(may_be_frame(&im, 0x400));
	assert_false(may_be_frame(&im, 0x3800));
	assert_false(may_be_frame(&im, 0x2000));
	close_image(&im);
}

/* Not only one at the end of the page. */
static void test_a_neighbour_within_the_page_has_its_bytes(void **state)
{
	static const struct {
		uint64_t start, end;
	} behind_code[] = { { 0x1800, 0x1900 }, { 0x1400, 0x1410 }, { 0x1ff0, 0x2000 }, { 0x1c00, 0x2400 } },
	  in_front[] = { { 0x3200, 0x3300 }, { 0x3000, 0x3010 }, { 0x37f0, 0x3800 }, { 0x2400, 0x3100 } };
	struct image im;
	struct cave cave;

	(void)state;
	for (unsigned i = 0; i < sizeof behind_code / sizeof behind_code[0]; i++) {
		const Elf64_Phdr more = segment(behind_code[i].start, behind_code[i].end, PF_R);
		open_image(&im, &more);
		assert_false(cave_of_module(&cave, &im.module, &im.tm, &im.maps));
		for (uint64_t at = 0x1400; at < behind_code[i].end && at < 0x2000; at += 16)
			assert_false(may_be_frame(&im, at));
		close_image(&im);
	}
	for (unsigned i = 0; i < sizeof in_front / sizeof in_front[0]; i++) {
		const Elf64_Phdr more = segment(in_front[i].start, in_front[i].end, PF_R);
		open_image(&im, &more);
		for (uint64_t at = 0x3000; at < in_front[i].end && at < 0x3800; at += 16)
			assert_false(may_be_frame(&im, at));
		close_image(&im);
	}
}

static int find(struct stub_place *place, const struct image *im, struct elf_module *list, size_t count)
{
	const struct modules m = { .list = list, .count = count };
	struct err e;

	return cave_find(place, &m, &im->tm, &im->maps, 512, 64, &e);
}

/* What the program does not need may be unloaded before anything is written there, or while a thread runs there. */
static void test_a_module_that_may_go_has_no_room(void **state)
{
	struct elf_module list[2];
	struct stub_place place;
	struct image im;
	uint32_t needed = 1;

	(void)state;
	open_image(&im, NULL);
	free(im.module.strings);
	im.module.strings = NULL;
	list[1] = im.module;
	list[1].soname = (char *)(uintptr_t) "libplugin.so";
	/* The program: it has no segments with room. */
	list[0] = (struct elf_module){ .path = (char *)(uintptr_t) "program",
		                       .soname = (char *)(uintptr_t) "",
		                       .is_main = true,
		                       .strings = (char *)(uintptr_t) "\0libplugin.so",
		                       .strings_bytes = sizeof "\0libplugin.so" - 1,
		                       .needed = &needed,
		                       .needed_count = 1 };
	assert_int_equal(find(&place, &im, list, 2), 0);
	assert_int_equal(place.code, (uint64_t)(uintptr_t)im.at + 0x1400);
	list[0].needed_count = 0;
	assert_int_equal(find(&place, &im, list, 2), -ENOSPC);
	list[1].is_main = true;
	assert_int_equal(find(&place, &im, list + 1, 1), 0);
	close_image(&im);
}

static void test_a_place_that_others_have_begun_to_use_is_seen(void **state)
{
	struct target_memory tm;
	struct stub_place place;
	struct err e;

	(void)state;
	uint8_t *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(page, MAP_FAILED);
	assert_int_equal(target_memory_open(&tm, getpid(), &e), 0);
	const uint64_t at = (uint64_t)(uintptr_t)page, bytes = remote_cave_bytes();
	place = (struct stub_place){ at + 16, at + PAGE, 1008 };
	page[15] = page[16 + bytes] = page[PAGE + 1008] = 1;
	assert_int_equal(remote_check_place(&tm, &place, &e), 0);
	page[16 + bytes - 1] = 1;
	assert_int_equal(remote_check_place(&tm, &place, &e), -EADDRINUSE);
	page[16 + bytes - 1] = 0;
	page[PAGE + 1007] = 1;
	assert_int_equal(remote_check_place(&tm, &place, &e), -EADDRINUSE);
	/* With a stub in front of it that is a frame. */
	memcpy(page + 16, stub_code, (size_t)(stub_code_end - stub_code));
	assert_int_equal(remote_check_place(&tm, &place, &e), 0);
	munmap(page, PAGE);
	assert_true(remote_check_place(&tm, &place, &e) < 0);
	target_memory_close(&tm);
	munmap(page + PAGE, PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unused_bytes_are_behind_code_and_in_front_of_data),
		cmocka_unit_test(test_a_neighbour_within_the_page_has_its_bytes),
		cmocka_unit_test(test_a_module_that_may_go_has_no_room),
		cmocka_unit_test(test_a_place_that_others_have_begun_to_use_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
