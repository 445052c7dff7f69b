/* SPDX-License-Identifier: MIT */
/* Calls of mmap, munmap and mremap, and what is recorded of mappings then. */
#pragma once

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "hook_fixture.h"
#include "map_hook.h"
#include "tables/mappings.h"

#define PAGE 4096u
#define BASE 0x70000000ull
#define AT(page) (BASE + (uint64_t)(page)*PAGE)
#define ANONYMOUS (MAP_PRIVATE | MAP_ANONYMOUS)

/* One stack for all. */
static __attribute__((noinline, unused)) uint64_t map(uint64_t at, uint64_t bytes, uint64_t flags)
{
	answer = at;
	uint64_t result = call(HOOK_mmap, at, bytes, 3, flags, 5, 0);

	__asm__ volatile("");
	return result;
}

static inline void unmap(uint64_t at, uint64_t bytes)
{
	answer = 0;
	call(HOOK_munmap, at, bytes, 0, 0, 0, 0);
}

static inline void remap(uint64_t from, uint64_t bytes, uint64_t to, uint64_t new_bytes, uint64_t flags)
{
	answer = to;
	call(HOOK_mremap, from, bytes, new_bytes, flags, to, 0);
}

/* UINT64_MAX: there is no record. */
static inline uint64_t size_at(uint64_t at)
{
	struct dump_live_record record;

	return fixture_live(&fixture, (void *)at, &record) ? record.size : UINT64_MAX;
}

/* The kernel says that nothing is mapped there, and all is elsewhere. */
static uint64_t gone_from, gone_to __attribute__((unused));

static inline int64_t ask(uint64_t page)
{
	assert_int_equal(page % PAGE, 0);
	return page >= gone_from && page < gone_to ? -EFAULT : (int64_t)page;
}

static inline void remap_fails(uint64_t from, uint64_t bytes, uint64_t to, uint64_t new_bytes, uint64_t flags)
{
	answer = UINT64_MAX;
	map_hook_ask = ask;
	call(HOOK_mremap, from, bytes, new_bytes, flags, to, 0);
}

static inline bool is_file(uint64_t at)
{
	struct dump_live_record record;

	assert_true(fixture_live(&fixture, (void *)at, &record));
	return fixture_stack(&fixture, record.stack)->flags & DUMP_STACK_FILE;
}

static inline int open_rate(void **state)
{
	(void)state;
	start(100000, true);
	return 0;
}
