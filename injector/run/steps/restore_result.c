/* SPDX-License-Identifier: MIT */
#include "run/steps/restore_result.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "got/entry_place.h"
#include "touch/patches/session_entries.h"

#define NAMED_MAX 32u /* lines; a hostile program could make thousands */

/* Words of one module that the program has unmapped out of it, next to each other on the list. */
struct unmapped {
	const struct elf_module *module;
	enum got_found found;
	uint64_t first;
	unsigned count;
	unsigned said;
};

static void say_unmapped(struct session *s, struct unmapped *unmapped)
{
	if (unmapped->count && unmapped->said++ < NAMED_MAX)
		session_add_note(s,
		                 "%u GOT entries of %s (the first at 0x%llx) were not restored: the program has %s; "
		                 "nothing was written there",
		                 unmapped->count,
		                 unmapped->module ? elf_module_name(unmapped->module)
		                                  : "a module that cannot be read any more",
		                 (unsigned long long)unmapped->first,
		                 unmapped->found == GOT_FOUND_NOTHING ? "unmapped their page"
		                                                      : "put other memory in their place");
}

/* What the program or another tool has done to a patched word, for which trampolines must stay. */
static const char *foreign_text(const struct session *s, const struct got_entry *entry, enum got_found found)
{
	if (found == GOT_FOUND_CODE)
		return "holds another tool's hook, which may lead to a trampoline";
	if (entry->state == GOT_PATCHED || !entry_place_is_there(&s->view.maps, NULL, entry->address))
		return "holds a trampoline in memory that cannot be written to";
	return "holds a trampoline again: it held something else, and the trampoline was put back during the detach";
}

static void add_unmapped(struct session *s, struct unmapped *unmapped, const struct got_entry *entry,
                         enum got_found found)
{
	const struct elf_module *m = modules_find(&s->view.modules, entry->address, false);

	if (!unmapped->count || unmapped->module != m || unmapped->found != found) {
		say_unmapped(s, unmapped);
		*unmapped = (struct unmapped){
			.module = m, .found = found, .first = entry->address, .said = unmapped->said
		};
	}
	unmapped->count++;
}

/* Is the library still there whose GOT entry is gone? Another one that was opened in the same place has its own file
 * mapped there. */
static bool is_unmapped(const struct session *s, const struct got_entry *entry, enum got_found found)
{
	const struct elf_module *m = modules_find(&s->view.modules, entry->address, false);
	const struct mapping *map = maps_find(&s->view.maps, entry->address);

	if (!m)
		return s->view.modules.unread[0] != '\0';
	return found == GOT_FOUND_NOTHING || !map || map->shared || map->inode != m->inode;
}

/*
 * A GOT entry that neither holds our trampoline nor got its old value back. The loader may have bound it over our
 * trampoline, or its module may have been opened anew in the same place; another tool may have hooked it after us; or
 * the program has done something to its page. What became of it, for the table of changes.
 */
static enum change_state count_unrestored(struct session *s, const struct got_entry *entry, struct unmapped *unmapped,
                                          bool *foreign)
{
	const uint64_t trampolines = s->payload.block.trampolines_address;
	const struct elf_module *m = modules_find(&s->view.modules, entry->address, false);
	struct word_counts *counts = &s->outcome.entries;
	struct trampoline trampoline = { 0 };

	int rc = target_read(&s->memory, trampoline_data(trampolines, entry->trampoline), &trampoline,
	                     sizeof trampoline, ERR_IGNORED);
	enum got_found found = entry_place_inspect(entry, trampolines, rc == 0 ? trampoline.original : entry->old_value,
	                                           &s->view.modules, &s->view.maps, &s->memory);
	switch (found) {
	case GOT_FOUND_ORIGINAL:
		if (entry->state == GOT_GONE)
			counts->gone++;
		else
			counts->restored++;
		return entry->state == GOT_GONE ? CHANGE_GONE : CHANGE_UNDONE;
	case GOT_FOUND_CODE:
	case GOT_FOUND_TRAMPOLINE:
		/* Where a module was unloaded there may be anything; what is called is in a GOT entry that is there. */
		if (found == GOT_FOUND_CODE && entry->state == GOT_GONE)
			break;
		*foreign = true;
		if (s->outcome.entries.foreign < NAMED_MAX)
			session_add_residue(s, "GOT entry 0x%llx of %s %s", (unsigned long long)entry->address,
			                    m ? elf_module_name(m) : "?", foreign_text(s, entry, found));
		counts->foreign++;
		return CHANGE_STAYS;
	case GOT_FOUND_NOTHING:
	case GOT_FOUND_DATA: break;
	}
	counts->gone++;
	if (is_unmapped(s, entry, found)) {
		/* The page may have been moved, and may come back. */
		*foreign = true;
		add_unmapped(s, unmapped, entry, found);
	}
	return CHANGE_GONE;
}

int restore_result_count(struct session *s, bool *foreign, struct err *e)
{
	AUTO_FREE struct got_entry *entries = NULL;
	struct unmapped unmapped = { 0 };
	uint32_t count;
	int row = changes_next(&s->changes, CHANGE_GOT_ENTRY, -1);

	int rc = session_entries(s, &entries, &count, e);
	if (rc < 0)
		return rc;
	s->outcome.entries = (struct word_counts){ 0 };
	for (uint32_t i = 0; i < count; i++) {
		/* Its row in the table of changes, which has the order of the list (word_patches.c). */
		const int own = row >= 0 && s->changes.list[row].address == entries[i].address ? row : -1;
		if (own >= 0)
			row = changes_next(&s->changes, CHANGE_GOT_ENTRY, row);
		if (entries[i].state == GOT_REFUSED || entries[i].state == GOT_EMPTY)
			continue;
		s->outcome.entries.patched++;
		if (entries[i].state == GOT_RESTORED) {
			s->outcome.entries.restored++;
			continue;
		}
		const enum change_state state = count_unrestored(s, &entries[i], &unmapped, foreign);
		if (own >= 0)
			changes_set(&s->changes, own, state);
	}
	say_unmapped(s, &unmapped);
	if (s->outcome.entries.foreign > NAMED_MAX)
		session_add_residue(s, "%u GOT entries more like these", s->outcome.entries.foreign - NAMED_MAX);
	return 0;
}
