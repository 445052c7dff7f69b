/* SPDX-License-Identifier: MIT */
/*
 * Patching of slots.
 *
 * A slot changes by compare-and-swap, from exactly the value that is expected there: a lazy binding that the loader resolves at the
 * same instant, or another tool, wins. A page that is not writable (RELRO) is made writable for the time of its slots and gets
 * exactly its own protection again; slots of one page come together, so that costs two calls for each page. While it is open, the
 * page is writable for all threads, as it was when the loader relocated it.
 */
#include "patch.h"

#include <errno.h>
#include <stdbool.h>

#include "gate.h"
#include "session.h"
#include "syscalls.h"

static struct slot session_slots[SESSION_SLOT_MAX] PAYLOAD_PAGES;

/* The page that is writable for our sake, 0 none. */
struct open_page {
	uint64_t address;
	uint64_t protection;
};

static void page_close(struct open_page *page)
{
	if (page->address)
		sys_mprotect(page->address, PAGE_BYTES, page->protection);
	page->address = 0;
}

static bool page_open(struct open_page *page, const struct slot *slot)
{
	uint64_t address = slot->address & ~(uint64_t)(PAGE_BYTES - 1);

	if (page->address == address && page->protection == slot->page_protection)
		return true;
	page_close(page);
	if (slot->page_protection & PROT_WRITE)
		return true;
	if (sys_mprotect(address, PAGE_BYTES, slot->page_protection | PROT_READ | PROT_WRITE) < 0)
		return false;
	page->address = address;
	page->protection = slot->page_protection;
	return true;
}

static bool word_change(uint64_t address, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n((uint64_t *)address, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static bool slot_sound(const struct slot *slot)
{
	return slot->address && !(slot->address & 7) && slot->gate < session.gate_count;
}

static enum slot_state slot_patch(const struct slot *slot, struct open_page *page)
{
	if (!slot_sound(slot) || !page_open(page, slot) ||
	    !word_change(slot->address, slot->old_value, gate_address(slot->gate)))
		return SLOT_REFUSED;
	return SLOT_PATCHED;
}

int64_t patch_slots(struct slot *slots, uint32_t count)
{
	struct open_page page = { 0 };

	if (count > SESSION_SLOT_MAX - session.slot_count)
		return -ENOSPC;
	for (uint32_t i = 0; i < count; i++) {
		struct slot *kept = &session_slots[session.slot_count];

		/* Listed before it is patched: whoever finishes for a dead memattach finds it. */
		*kept = slots[i];
		kept->state = SLOT_PATCHED;
		__atomic_store_n(&session.slot_count, session.slot_count + 1, __ATOMIC_RELEASE);
		kept->state = (uint16_t)slot_patch(kept, &page);
		slots[i].state = kept->state;
	}
	page_close(&page);
	return 0;
}

static enum slot_state slot_restore(const struct slot *slot, struct open_page *page)
{
	uint64_t gate = gate_address(slot->gate);

	if (__atomic_load_n((uint64_t *)slot->address, __ATOMIC_ACQUIRE) != gate)
		return SLOT_FOREIGN;
	if (!page_open(page, slot))
		return SLOT_PATCHED;
	return word_change(slot->address, gate, slot->old_value) ? SLOT_RESTORED : SLOT_FOREIGN;
}

void patch_restore(void)
{
	struct open_page page = { 0 };

	for (uint32_t i = 0; i < session.slot_count; i++) {
		struct slot *slot = &session_slots[i];

		if (slot->state == SLOT_PATCHED)
			slot->state = (uint16_t)slot_restore(slot, &page);
	}
	page_close(&page);
}

void patch_init(void)
{
	session.slot_count = 0;
	session.slots_address = (uint64_t)session_slots;
}
