/* SPDX-License-Identifier: MIT */
/*
 * Patching of slots.
 *
 * A slot changes by compare-and-swap, from exactly the value that is expected there: a lazy binding that the loader
 * resolves at the same instant, or another tool, wins. A page that is not writable (RELRO) is made writable for the
 * time of its slots and gets exactly its own protection again; slots of one page come together, so that costs two calls
 * for each page. While it is open, the page is writable for all threads, as it was when the loader relocated it.
 *
 * Another thread may call dlopen or dlclose at any time. So all this happens under the loader's lock (control.h), and
 * there memattach is asked what is mapped at each slot: one that is not there any more must not even be read. If
 * another library was mapped in the same place, the word does not hold what is expected, and the compare-and-swap
 * leaves it alone. The protection to put back comes with the answer: one that was read while the loader was half way
 * (it maps a library read-only as a whole first) would leave the library's data read-only. A program that unmaps a part
 * of a library by itself, without the loader, has only the microseconds between the answer and the compare-and-swap to
 * do it unseen.
 */
#include "patch.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

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
	    !word_change(slot->address, slot->old_value, gates_slot_value(slot->gate)))
		return SLOT_REFUSED;
	return SLOT_PATCHED;
}

static enum slot_state slot_restore(const struct slot *slot, struct open_page *page)
{
	uint64_t gate = gates_slot_value(slot->gate), now;

	/* The program itself has taken away the right to read it. */
	if (!(slot->page_protection & PROT_READ) && !page_open(page, slot))
		return SLOT_PATCHED;
	now = __atomic_load_n((uint64_t *)slot->address, __ATOMIC_ACQUIRE);
	if (now == slot->old_value)
		return SLOT_RESTORED; /* listed, but memattach died before it was patched */
	if (now != gate)
		return SLOT_FOREIGN;
	if (!page_open(page, slot))
		return SLOT_PATCHED;
	return word_change(slot->address, gate, slot->old_value) ? SLOT_RESTORED : SLOT_FOREIGN;
}

/* False: there is no memattach that could tell. */
static bool protections_ask(int channel)
{
	__atomic_store_n(&session.protections_known, 0, __ATOMIC_RELAXED);
	if (channel < 0)
		sys_checkpoint(CONTROL_CHECKPOINT);
	else
		sys_meet(channel, CONTROL_CHECKPOINT);
	return __atomic_load_n(&session.protections_known, __ATOMIC_ACQUIRE) != 0;
}

/* Slots [first, end) of the session go through change; absent: the state of those that are not there. */
static int64_t change_all(enum slot_state (*change)(const struct slot *, struct open_page *), uint32_t first,
                          uint32_t end, enum slot_state absent, int channel)
{
	struct open_page page = { 0 };

	if (session.ask_protections && !protections_ask(channel))
		return -EINTR;
	for (uint32_t i = first; i < end; i++) {
		struct slot *slot = &session_slots[i];

		if (slot->state == SLOT_PATCHED)
			slot->state = (uint16_t)(slot->page_protection == SLOT_ABSENT ? absent : change(slot, &page));
	}
	page_close(&page);
	return 0;
}

int64_t patch_slots(struct slot *slots, uint32_t count, int channel)
{
	uint32_t first = session.slot_count;

	if (count > SESSION_SLOT_MAX - first)
		return -ENOSPC;
	for (uint32_t i = 0; i < count; i++) {
		session_slots[first + i] = slots[i];
		session_slots[first + i].state = SLOT_PATCHED;
	}
	/* Listed before they are patched: whoever finishes for a dead memattach finds them. */
	__atomic_store_n(&session.slot_count, first + count, __ATOMIC_RELEASE);
	int64_t result = change_all(slot_patch, first, first + count, SLOT_REFUSED, channel);

	if (result < 0)
		__atomic_store_n(&session.slot_count, first, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < count && result == 0; i++)
		slots[i].state = session_slots[first + i].state;
	return result;
}

int64_t patch_restore(int channel)
{
	return change_all(slot_restore, 0, session.slot_count, SLOT_GONE, channel);
}

void patch_init(void)
{
	session.slot_count = 0;
	session.slots_address = (uint64_t)session_slots;
}
