/* SPDX-License-Identifier: MIT */
#include "slot_place.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "cleanup.h"

#define PAGE_BYTES 4096u

uint64_t slot_place_protection(const struct maps *now, const struct maps *planned, uint64_t address)
{
	const struct mapping *m = maps_find(now, address), *was = planned ? maps_find(planned, address) : m;

	if (!m || !was || m->shared)
		return SLOT_ABSENT;
	if (planned && (!(m->prot & PROT_READ) || (m->inode ? !mapping_same_file(m, was) : was->inode != 0)))
		return SLOT_ABSENT;
	return m->prot;
}

static uint64_t page_of(const struct slot *slot)
{
	return slot->address & ~(uint64_t)(PAGE_BYTES - 1);
}

/* One word of each page. */
static bool can_read_all(const struct slot *slots, size_t count, struct target_piece *pieces, const struct target_memory *memory)
{
	static uint64_t word; /* what they hold does not matter */
	struct err ignored;
	size_t used = 0;

	for (size_t i = 0; i < count; i++)
		if (slots[i].page_protection != SLOT_ABSENT && (i == 0 || page_of(&slots[i]) != page_of(&slots[i - 1])))
			pieces[used++] = (struct target_piece){ slots[i].address, sizeof word, &word };
	return target_read_batch(memory, pieces, used, &ignored) == 0;
}

int slot_places_find(struct slot *slots, size_t count, const struct maps *now, const struct maps *planned,
		     const struct target_memory *memory, struct err *e)
{
	AUTO_FREE struct target_piece *pieces = calloc(count + 1, sizeof *pieces);
	uint64_t word;
	struct err ignored;

	if (!pieces)
		return err_set(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < count; i++)
		slots[i].page_protection = slot_place_protection(now, planned, slots[i].address);
	if (can_read_all(slots, count, pieces, memory))
		return 0;
	for (size_t i = 0; i < count; i++)
		if (slots[i].page_protection != SLOT_ABSENT && target_read_u64(memory, slots[i].address, &word, &ignored) < 0)
			slots[i].page_protection = SLOT_ABSENT;
	return 0;
}

enum slot_found slot_place_look(const struct slot *slot, uint64_t gates, uint64_t original, const struct modules *modules, const struct maps *maps,
				const struct target_memory *memory)
{
	const struct elf_module *home = modules_find(modules, slot->address, false);
	uint64_t now;
	struct err ignored;

	if (target_read_u64(memory, slot->address, &now, &ignored) < 0)
		return SLOT_FOUND_NOTHING;
	if (gate_is(gates, slot->gate, now))
		return SLOT_FOUND_GATE;
	if (now == original || now == slot->old_value)
		return SLOT_FOUND_ORIGINAL;
	/* In a fresh module that is the way to the loader; in the module that was patched another tool lives. */
	if (home && slot->state == SLOT_GONE && modules_find(modules, now, true) == home)
		return SLOT_FOUND_ORIGINAL;
	const struct mapping *m = maps_find(maps, now);
	return m && m->prot & PROT_EXEC ? SLOT_FOUND_CODE : SLOT_FOUND_DATA;
}
