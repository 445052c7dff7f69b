/* SPDX-License-Identifier: MIT */
/* Types of blocks of this process, as far as there is time and room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "census/blocks/block_labels.h"

#define PAGE 4096u
#define SECOND 1000000000ull
#define ADDRESS 0x616161616120ull /* " aaaaa" */
#define POINTERS 1024u            /* at this offset: eight of it, and one that other words follow */

static struct target self;
static struct target_memory memory;
static struct maps maps;
static struct resident_pages pages;
static struct census_memory census;
static const struct census_heap heap;
static uint64_t page; /* of this process; the next one is not there */

static int set_up(void **state)
{
	struct err e;

	(void)state;
	/* What is behind the first page is never touched; farther behind could be a file, which is read. */
	char *at = mmap(NULL, (size_t)8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(at != MAP_FAILED);
	page = (uint64_t)(uintptr_t)at;
	memset(at, 'x', 64);
	at[256] = 1;
	for (size_t i = 0; i < 9; i++)
		((uint64_t *)(void *)(at + POINTERS))[i] = ADDRESS;
	((uint64_t *)(void *)(at + POINTERS))[9] = 1;
	memset(at + PAGE - 32, 'y', 32);
	self = (struct target){ .pid = getpid(), .tid = getpid(), .pidfd = -1 };
	assert_int_equal(resident_pages_add(&pages, &(struct page_run){ .start = page, .end = page + PAGE }, &e), 0);
	return maps_read(&maps, "/proc/self/maps", &e) || target_memory_open(&memory, getpid(), &e) ||
	       census_memory_open(&census, &self, &maps, &memory, &pages, 1 << 20, &e);
}

static int tear_down(void **state)
{
	(void)state;
	census_memory_close(&census);
	target_memory_close(&memory);
	resident_pages_free(&pages);
	maps_free(&maps);
	return 0;
}

static const char *name_of(const struct block_labels *l, uint32_t id)
{
	const char *at = l->text[0];

	for (uint32_t i = 1; i < id; i++)
		at += strlen(at) + 1;
	return id ? at : "";
}

static void test_blocks_get_their_types(void **state)
{
	struct block_labels *l = block_labels_new();
	struct err e;

	(void)state;
	assert_non_null(l);
	assert_true(block_labels_add(l, page + 2 * PAGE, 64));        /* not there */
	assert_true(block_labels_add(l, page + PAGE - 32, 4 * PAGE)); /* as far as it is there */
	assert_true(block_labels_add(l, page + 256, 64));
	assert_true(block_labels_add(l, page + 512, 64));
	assert_true(block_labels_add(l, page, 64));
	assert_true(block_labels_add(l, 0, 64));
	block_labels_sort(l);
	assert_int_equal(block_labels_find_types(l, &heap, &census, SECOND, &e), 0);
	assert_int_equal(l->list[0].type, 0);
	assert_string_equal(name_of(l, l->list[1].type), "3text");
	assert_string_equal(name_of(l, l->list[2].type), "0not named");
	assert_string_equal(name_of(l, l->list[3].type), "3zeros");
	assert_string_equal(name_of(l, l->list[4].type), "3text");
	assert_int_equal(l->list[5].type, 0);
	assert_true(l->looked_at == 4 && !l->cut && l->names[0] == 3);
	block_labels_free(l);
}

static void test_addresses_that_look_like_text_are_none(void **state)
{
	struct heap_segment segment = { .start = ADDRESS & -4096ull, .end = (ADDRESS | 4095) + 1 };
	const struct census_heap has_it = { .glibc = { .segments = &segment, .segment_count = 1 } };
	struct block_labels *l = block_labels_new();
	struct err e;

	(void)state;
	assert_true(block_labels_add(l, page + POINTERS, 64) && block_labels_add(l, page + POINTERS + 64, 64));
	assert_int_equal(block_labels_find_types(l, &has_it, &census, SECOND, &e), 0);
	assert_string_equal(name_of(l, l->list[0].type), "3pointers");
	assert_string_equal(name_of(l, l->list[1].type), "0not named");
	l->list[1].type = 0;
	assert_int_equal(block_labels_find_types(l, &heap, &census, SECOND, &e), 0);
	assert_string_equal(name_of(l, l->list[1].type), "3text"); /* no heap is there */
	block_labels_free(l);
}

static void test_time_and_room_have_an_end(void **state)
{
	struct block_labels *l = block_labels_new();
	char name[DUMP_BLOCK_NAME_MAX + 100];
	uint32_t count = 0;
	struct err e;

	(void)state;
	assert_non_null(l);
	assert_true(block_labels_add(l, page, 64));
	assert_int_equal(block_labels_find_types(l, &heap, &census, 0, &e), 0);
	assert_true(l->cut && l->list[0].type == 0);
	l->cut = false;
	memset(name, 'n', sizeof name);
	name[sizeof name - 1] = '\0';
	while (block_labels_name(l, 1, DUMP_TYPE_NONE, name))
		count++;
	assert_true(count > 10000 && count <= DUMP_BLOCK_NAMES_MAX && l->names[1] == count);
	assert_int_equal(strlen(l->text[1] + 1), DUMP_BLOCK_NAME_MAX - 1); /* cut */
	for (uint32_t i = l->count; i < BLOCK_LABELS_MAX; i++)
		assert_true(block_labels_add(l, page, 64));
	assert_false(l->cut);
	assert_false(block_labels_add(l, page, 64));
	assert_true(l->cut);
	block_labels_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks_get_their_types),
		cmocka_unit_test(test_addresses_that_look_like_text_are_none),
		cmocka_unit_test(test_time_and_room_have_an_end),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
