/* SPDX-License-Identifier: MIT */
/* Words that are patched and given back. This process stands in as the target: no other thread is there that would have
 * to stand still. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include <fcntl.h>

#include "maps/maps.h"
#include "touch/patches/word_patches.h"

#define TRAMPOLINES 0x7000000000ull
#define PAGE 4096u
#define WORDS (PAGE / sizeof(uint64_t))

enum { READ_ONLY, WRITABLE, OTHER_VALUE, MISALIGNED, SHARED, UNMAPPED, TAKEN, ENTRIES };

struct world {
	struct session s;
	struct memattach_session block;
	struct got_entry list[16];
	struct control_trampoline trampolines[3];
	struct entry_plan entries[ENTRIES];
	uint64_t *pages; /* two: read-only and not */
	uint64_t *shared;
	uint64_t *unmapped;
};

static uint64_t trampoline(uint32_t i, uint32_t hook)
{
	return trampoline_address(TRAMPOLINES, i, hook);
}

static uint64_t *map(size_t bytes, int flags)
{
	uint64_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	return at;
}

static void plan(struct world *w, unsigned i, const void *word, uint64_t value)
{
	w->entries[i] = (struct entry_plan){ .address = (uint64_t)word,
		                             .value = value,
		                             .trampoline = 1 + i % 2,
		                             .hook = w->trampolines[1 + i % 2].hook };
}

static int open_world(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	struct err e;

	w->trampolines[1] = (struct control_trampoline){ .original = 1, .hook = HOOK_malloc };
	w->trampolines[2] = (struct control_trampoline){ .original = 2, .hook = HOOK_free };
	w->pages = map(2 * PAGE, MAP_PRIVATE);
	w->shared = map(PAGE, MAP_SHARED);
	w->unmapped = map(PAGE, MAP_PRIVATE);
	for (unsigned i = 0; i < 2 * WORDS; i++)
		w->pages[i] = 1000 + i;
	w->shared[0] = 5;
	plan(w, READ_ONLY, &w->pages[3], 1003);
	plan(w, WRITABLE, &w->pages[WORDS], 1000 + WORDS);
	plan(w, OTHER_VALUE, &w->pages[WORDS + 1], 99);
	plan(w, MISALIGNED, (char *)&w->pages[WORDS + 2] + 4, 0);
	memcpy(&w->entries[MISALIGNED].value, (char *)&w->pages[WORDS + 2] + 4, sizeof(uint64_t));
	plan(w, SHARED, w->shared, 5);
	plan(w, UNMAPPED, w->unmapped, 0);
	plan(w, TAKEN, &w->pages[WORDS + 3], 1000 + WORDS + 3);
	assert_int_equal(mprotect(w->pages, PAGE, PROT_READ), 0);
	w->s.target.pid = getpid();
	w->s.target.pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	assert_int_equal(target_memory_open(&w->s.memory, getpid(), &e), 0);
	w->s.writer =
		(struct target_writer){ .fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC), .changes = &w->s.changes };
	assert_true(w->s.writer.fd >= 0);
	changes_made(&w->s.changes, CHANGE_PAYLOAD);
	assert_int_equal(maps_read(&w->s.view.maps, "/proc/self/maps", &e), 0);
	w->s.view.plan = (struct got_plan){
		.entries = w->entries, .entry_count = ENTRIES, .trampolines = w->trampolines, .trampoline_count = 3
	};
	w->block.entry_count = 2; /* of modules before */
	w->s.payload.session = (uint64_t)&w->block;
	w->s.payload.block.trampolines_address = TRAMPOLINES;
	w->s.payload.block.entries_address = (uint64_t)w->list;
	munmap(w->unmapped, PAGE);
	*state = w;
	return 0;
}

static int close_world(void **state)
{
	struct world *w = *state;

	close(w->s.target.pidfd);
	maps_free(&w->s.view.maps);
	target_memory_close(&w->s.memory);
	target_writer_close(&w->s.writer);
	changes_free(&w->s.changes);
	munmap(w->pages, 2 * PAGE);
	munmap(w->shared, PAGE);
	free(w);
	return 0;
}

static void write_words(struct world *w)
{
	struct word_patches words;
	struct err e;

	assert_int_equal(word_patches_list(&w->s, &words, &e), 0);
	assert_int_equal(w->block.entry_count, 2 + ENTRIES);
	assert_int_equal(w->pages[3], 1003); /* listed before it is patched */
	assert_int_equal(word_patches_write(&w->s, &words, &e), 0);
	word_patches_count(&w->s, &words);
	word_patches_free(&words);
}

static int prot_of(const void *address)
{
	struct maps maps;
	struct err e;

	assert_int_equal(maps_read(&maps, "/proc/self/maps", &e), 0);
	const int prot = maps_find(&maps, (uint64_t)address)->prot;
	maps_free(&maps);
	return prot;
}

static void test_only_what_is_expected_is_patched(void **state)
{
	struct world *w = *state;
	const struct got_entry *entries = w->list + 2;

	write_words(w);
	for (unsigned i = 0; i < ENTRIES; i++)
		assert_int_equal(entries[i].state,
		                 i == READ_ONLY || i == WRITABLE || i == TAKEN ? GOT_PATCHED : GOT_REFUSED);
	assert_int_equal(w->pages[3], trampoline(1, HOOK_malloc));
	assert_int_equal(prot_of(w->pages), PROT_READ);
	assert_int_equal(w->pages[WORDS], trampoline(2, HOOK_free));
	assert_int_equal(w->pages[WORDS + 1], 1000 + WORDS + 1);
	assert_int_equal(w->pages[WORDS + 2], 1000 + WORDS + 2);
	assert_int_equal(w->shared[0], 5);
	assert_int_equal(w->s.outcome.entries.patched, 3);
	assert_int_equal(w->s.outcome.entries.refused, 4);
}

static void test_only_what_is_ours_is_given_back(void **state)
{
	struct world *w = *state;
	const struct got_entry *entries = w->list + 2;
	struct word_patches words;
	struct err e;

	write_words(w);
	w->pages[WORDS + 3] = 77; /* somebody else's hook */
	w->block.entry_count = 2 + ENTRIES;
	assert_int_equal(word_patches_read(&w->s, &words, &e), 0);
	assert_int_equal(word_patches_restore(&w->s, &words, &e), 0);
	word_patches_free(&words);
	assert_int_equal(entries[READ_ONLY].state, GOT_RESTORED);
	assert_int_equal(entries[WRITABLE].state, GOT_RESTORED);
	assert_int_equal(entries[TAKEN].state, GOT_FOREIGN);
	assert_int_equal(entries[OTHER_VALUE].state, GOT_REFUSED);
	assert_int_equal(w->pages[3], 1003);
	assert_int_equal(prot_of(w->pages), PROT_READ);
	assert_int_equal(w->pages[WORDS], 1000 + WORDS);
	assert_int_equal(w->pages[WORDS + 3], 77);
}

/* memattach died between the list and the words, or in the middle of these. */
static void test_what_was_listed_only_is_as_before(void **state)
{
	struct world *w = *state;
	struct word_patches words;
	struct err e;

	assert_int_equal(word_patches_list(&w->s, &words, &e), 0);
	word_patches_free(&words);
	assert_int_equal(word_patches_read(&w->s, &words, &e), 0);
	assert_int_equal(word_patches_restore(&w->s, &words, &e), 0);
	word_patches_free(&words);
	assert_int_equal(w->list[2 + WRITABLE].state, GOT_RESTORED);
	assert_int_equal(w->list[2 + OTHER_VALUE].state, GOT_FOREIGN);
	assert_int_equal(w->list[2 + UNMAPPED].state, GOT_GONE);
	for (unsigned i = 0; i < 2 * WORDS; i++)
		assert_int_equal(w->pages[i], 1000 + i);
}

static void test_what_was_listed_only_can_be_withdrawn(void **state)
{
	struct world *w = *state;
	struct word_patches words;
	struct err e;

	assert_int_equal(word_patches_list(&w->s, &words, &e), 0);
	word_patches_withdraw(&w->s, &words);
	word_patches_free(&words);
	assert_int_equal(w->block.entry_count, 2);
	assert_int_equal(w->s.changes.count, 0);
	write_words(w);
	assert_int_equal(word_patches_list(&w->s, &words, &e), 0);
	words.rows[0] = 0; /* as if one of these was written */
	word_patches_withdraw(&w->s, &words);
	word_patches_free(&words);
	assert_int_equal(w->block.entry_count, 2 + 2 * ENTRIES);
	assert_int_equal(w->s.changes.count, 2 * ENTRIES);
}

/* The table is that of another memattach, which has died: it begins with what the payload lists. */
static void test_what_was_refused_is_no_change_of_one_that_died(void **state)
{
	struct world *w = *state;
	const uint32_t *sums = w->s.changes.sums[CHANGE_GOT_ENTRY];
	struct word_patches words;
	struct err e;

	write_words(w);
	changes_free(&w->s.changes);
	changes_made(&w->s.changes, CHANGE_PAYLOAD);
	memmove(w->list, w->list + 2, ENTRIES * sizeof *w->list);
	w->block.entry_count = ENTRIES;
	assert_int_equal(word_patches_read(&w->s, &words, &e), 0);
	assert_int_equal(sums[CHANGE_MADE], 3);
	assert_int_equal(word_patches_restore(&w->s, &words, &e), 0);
	word_patches_free(&words);
	assert_int_equal(sums[CHANGE_UNDONE], 3);
	assert_int_equal(sums[CHANGE_STAYS] + sums[CHANGE_MADE], 0);
}

/* A module that was opened again in place is listed twice: what the newest one found there is right. */
static void test_a_word_that_is_listed_twice_gets_what_it_held_last(void **state)
{
	struct world *w = *state;
	struct word_patches words;
	struct err e;

	for (unsigned i = 0; i < 2; i++)
		w->list[i] = (struct got_entry){ .address = (uint64_t)&w->pages[WORDS + 4],
			                         .old_value = 111 + i,
			                         .trampoline = 1,
			                         .state = GOT_PATCHED };
	w->pages[WORDS + 4] = trampoline(1, HOOK_malloc);
	assert_int_equal(word_patches_read(&w->s, &words, &e), 0);
	assert_int_equal(word_patches_restore(&w->s, &words, &e), 0);
	word_patches_free(&words);
	assert_int_equal(w->pages[WORDS + 4], 112);
	assert_int_equal(w->s.changes.sums[CHANGE_GOT_ENTRY][CHANGE_MADE], 0);
}

static void test_there_is_room_for_so_many(void **state)
{
	struct world *w = *state;
	struct word_patches words;
	struct err e;

	w->block.entry_count = SESSION_ENTRY_MAX - ENTRIES + 1;
	assert_int_equal(word_patches_list(&w->s, &words, &e), -ENOSPC);
	assert_int_equal(w->block.entry_count, SESSION_ENTRY_MAX - ENTRIES + 1);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_only_what_is_expected_is_patched),
		CASE(test_only_what_is_ours_is_given_back),
		CASE(test_what_was_listed_only_is_as_before),
		CASE(test_what_was_listed_only_can_be_withdrawn),
		CASE(test_what_was_refused_is_no_change_of_one_that_died),
		CASE(test_a_word_that_is_listed_twice_gets_what_it_held_last),
		CASE(test_there_is_room_for_so_many),
	};

	return cmocka_run_group_tests_name("word_patches", tests, NULL, NULL);
}
