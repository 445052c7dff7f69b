/* SPDX-License-Identifier: MIT */
/*
 * Patching of GOT entries.
 *
 * A GOT entry changes by compare-and-swap, from exactly the value that is expected there: a lazy binding that the
 * loader resolves at the same instant, or another tool, wins. A page that is not writable (RELRO) is made writable for
 * the time of its GOT entries and gets exactly its own protection again; GOT entries of one page come together, so that
 * costs two calls for each page. While it is open, the page is writable for all threads, as it was when the loader
 * relocated it.
 *
 * Another thread may call dlopen or dlclose at any time. So all this happens under the loader's lock (control.h), and
 * there memattach is asked what is mapped at each GOT entry: one that is not there any more must not even be read. If
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

#include "known_code.h"
#include "trampoline_setup.h"
#include "session_block.h"
#include "syscalls.h"

static struct got_entry session_entries[SESSION_ENTRY_MAX] PAYLOAD_PAGES;
static struct code_patch session_code_patches[SESSION_CODE_PATCH_MAX] PAYLOAD_PAGES;

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

static bool page_open(struct open_page *page, const struct got_entry *entry)
{
	uint64_t address = entry->address & ~(uint64_t)(PAGE_BYTES - 1);

	if (page->address == address && page->protection == entry->page_protection)
		return true;
	page_close(page);
	if (entry->page_protection & PROT_WRITE)
		return true;
	if (sys_mprotect(address, PAGE_BYTES, entry->page_protection | PROT_READ | PROT_WRITE) < 0)
		return false;
	page->address = address;
	page->protection = entry->page_protection;
	return true;
}

static bool word_change(uint64_t address, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n((uint64_t *)address, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static bool entry_sound(const struct got_entry *entry)
{
	return entry->address && !(entry->address & 7) && entry->trampoline < session.trampoline_count;
}

static enum got_state entry_patch(const struct got_entry *entry, struct open_page *page)
{
	if (!entry_sound(entry) || !page_open(page, entry) ||
	    !word_change(entry->address, entry->old_value, trampolines_entry_value(entry->trampoline)))
		return GOT_REFUSED;
	return GOT_PATCHED;
}

static enum got_state entry_restore(const struct got_entry *entry, struct open_page *page)
{
	uint64_t trampoline = trampolines_entry_value(entry->trampoline), now;

	/* The program itself has taken away the right to read it. */
	if (!(entry->page_protection & PROT_READ) && !page_open(page, entry))
		return GOT_PATCHED;
	now = __atomic_load_n((uint64_t *)entry->address, __ATOMIC_ACQUIRE);
	if (now == entry->old_value)
		return GOT_RESTORED; /* listed, but memattach died before it was patched */
	if (now != trampoline)
		return GOT_FOREIGN;
	if (!page_open(page, entry))
		return GOT_PATCHED;
	return word_change(entry->address, trampoline, entry->old_value) ? GOT_RESTORED : GOT_FOREIGN;
}

/* False: there is no memattach that could tell. */
static bool protections_ask(int channel)
{
	__atomic_store_n(&session.protections_known, 0, __ATOMIC_RELAXED);
	if (channel < 0)
		sys_checkpoint(CONTROL_CHECKPOINT);
	else
		sys_synchronise(channel, CONTROL_CHECKPOINT);
	return __atomic_load_n(&session.protections_known, __ATOMIC_ACQUIRE) != 0;
}

/* GOT entries [first, end) of the session go through change; absent: the state of those that are not there. */
static int64_t change_all(enum got_state (*change)(const struct got_entry *, struct open_page *), uint32_t first,
                          uint32_t end, enum got_state absent, int channel)
{
	struct open_page page = { 0 };

	if (session.ask_protections && !protections_ask(channel))
		return -EINTR;
	for (uint32_t i = first; i < end; i++) {
		struct got_entry *entry = &session_entries[i];

		if (entry->state == GOT_PATCHED)
			entry->state = (uint16_t)(entry->page_protection == GOT_ABSENT ? absent : change(entry, &page));
	}
	page_close(&page);
	return 0;
}

int64_t patch_entries(struct got_entry *entries, uint32_t count, int channel)
{
	uint32_t first = session.entry_count;

	if (count > SESSION_ENTRY_MAX - first)
		return -ENOSPC;
	for (uint32_t i = 0; i < count; i++) {
		session_entries[first + i] = entries[i];
		session_entries[first + i].state = GOT_PATCHED;
	}
	/* Listed before they are patched: whoever finishes for a dead memattach finds them. */
	__atomic_store_n(&session.entry_count, first + count, __ATOMIC_RELEASE);
	int64_t result = change_all(entry_patch, first, first + count, GOT_REFUSED, channel);

	if (result < 0)
		__atomic_store_n(&session.entry_count, first, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < count && result == 0; i++) {
		entries[i].state = session_entries[first + i].state;
		if (entries[i].state == GOT_PATCHED && entries[i].flags & GOT_COUNTS)
			known_code_watch(entries[i].address, trampolines_entry_value(entries[i].trampoline));
	}
	return result;
}

int64_t patch_restore(int channel)
{
	known_code_end();
	return change_all(entry_restore, 0, session.entry_count, GOT_GONE, channel);
}

void patch_init(void)
{
	session.entry_count = 0;
	session.entries_address = (uint64_t)session_entries;
	session.code_patches_address = (uint64_t)session_code_patches;
	__builtin_memset(session_code_patches, 0, sizeof(session_code_patches));
	__builtin_memset(session.detours, 0, sizeof(session.detours));
}
