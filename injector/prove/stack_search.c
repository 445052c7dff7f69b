/* SPDX-License-Identifier: MIT */
#include "prove/stack_search.h"

#include "arch/registers.h"
#include "control.h"

#define LIVE_STACK_BYTES (256u << 10) /* above the stack pointer */

bool address_ranges_hold(const struct address_range *ranges, unsigned count, uint64_t address)
{
	for (unsigned i = 0; i < count; i++)
		if (address >= ranges[i].start && address < ranges[i].end)
			return true;
	return false;
}

/*
 * The next page of a stack; false: it ends before. Where the kernel reads for us what the program may read, that is at
 * a page that the program may not: the guard page of the next thread's stack, which the rights of a tracer would pass.
 */
static bool read_stack(const struct target_memory *memory, uint64_t at, void *page, size_t bytes, bool *by_its_rights)
{
	struct target_memory plain = *memory;

	plain.mem_fd = -1;
	if (target_read(&plain, at, page, bytes, ERR_IGNORED) == 0)
		return *by_its_rights = true;
	return !*by_its_rights && target_read(memory, at, page, bytes, ERR_IGNORED) == 0;
}

/* Visits as much of the stack as is mapped above the stack pointer, word by word; true ends it. */
static bool any_word(const struct target_memory *memory, uint64_t sp,
                     bool (*visit)(uint64_t at, uint64_t word, void *context), void *context)
{
	uint64_t page[512];
	bool by_its_rights = false;
	uint64_t at = (sp - STACK_RED_ZONE_BYTES) & ~7ull;

	for (uint64_t end = at + LIVE_STACK_BYTES; at < end;) {
		size_t bytes = 4096 - at % 4096;
		if (!read_stack(memory, at, page, bytes, &by_its_rights))
			break;
		for (size_t i = 0; i < bytes / sizeof page[0]; i++)
			if (visit(at + i * sizeof page[0], page[i], context))
				return true;
		at += bytes;
	}
	return false;
}

struct wanted {
	const struct address_range *ranges;
	unsigned count;
};

static bool is_wanted(uint64_t at, uint64_t word, void *context)
{
	const struct wanted *w = context;

	(void)at;
	return address_ranges_hold(w->ranges, w->count, word);
}

bool stack_search_holds(const struct target_memory *memory, uint64_t sp, const struct address_range *ranges,
                        unsigned range_count)
{
	struct wanted wanted = { ranges, range_count };

	return any_word(memory, sp, is_wanted, &wanted);
}

struct marker_search {
	const struct address_range *ranges;
	unsigned range_count;
	uint64_t before[REGISTERS_BEHIND_PC]; /* the words below, the last one first */
};

static bool is_hook(uint64_t at, uint64_t word, void *context)
{
	struct marker_search *h = context;
	const uint64_t behind[REGISTERS_BEHIND_PC] = { h->before[1], h->before[0], word };
	bool found = word == (HOOK_LIVE_MAGIC ^ at) ||
	             (address_ranges_hold(h->ranges, h->range_count, h->before[2]) && registers_follow_pc(behind));

	h->before[2] = h->before[1];
	h->before[1] = h->before[0];
	h->before[0] = word;
	return found;
}

bool stack_search_in_hook(const struct target_memory *memory, uint64_t sp, const struct address_range *ranges,
                          unsigned range_count)
{
	struct marker_search search = { .ranges = ranges, .range_count = range_count };

	return any_word(memory, sp, is_hook, &search);
}
