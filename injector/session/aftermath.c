/* SPDX-License-Identifier: MIT */
#include "aftermath.h"

#include <stdlib.h>

#include "follow.h"
#include "slot_place.h"

#define NAMED_MAX 32u /* lines; a hostile program could make thousands */

/* Slots of one module that the program has torn out of it, next to each other on the list. */
struct torn {
	const struct elf_module *module;
	enum slot_found found;
	uint64_t first;
	unsigned count;
	unsigned said;
};

static void say_torn(struct session *s, struct torn *torn)
{
	if (torn->count && torn->said++ < NAMED_MAX)
		session_add_note(s,
		                 "%u slots of %s (the first at 0x%llx) were not restored: the program has %s; nothing "
		                 "was written there",
		                 torn->count,
		                 torn->module ? elf_module_name(torn->module) : "a module that cannot be read any more",
		                 (unsigned long long)torn->first,
		                 torn->found == SLOT_FOUND_NOTHING ? "unmapped their page"
		                                                   : "put other memory in their place");
}

/* What the program or another tool has done to a slot, for which gates must stay. */
static const char *foreign_text(const struct session *s, const struct slot *slot, enum slot_found found)
{
	if (found == SLOT_FOUND_CODE)
		return "holds another tool's hook, which may lead to a gate";
	if (slot->state == SLOT_PATCHED || slot_place_protection(&s->maps, NULL, slot->address) == SLOT_ABSENT)
		return "holds a gate in memory that cannot be written to";
	return "holds a gate again: it held something else, and the gate was put back during the detach";
}

static void add_torn(struct session *s, struct torn *torn, const struct slot *slot, enum slot_found found)
{
	const struct elf_module *m = modules_find(&s->modules, slot->address, false);

	if (!torn->count || torn->module != m || torn->found != found) {
		say_torn(s, torn);
		*torn = (struct torn){ .module = m, .found = found, .first = slot->address, .said = torn->said };
	}
	torn->count++;
}

/* Is the library still there whose slot is gone? Another one that was opened in the same place has its own file mapped
 * there. */
static bool is_torn(const struct session *s, const struct slot *slot, enum slot_found found)
{
	const struct elf_module *m = modules_find(&s->modules, slot->address, false);
	const struct mapping *map = maps_find(&s->maps, slot->address);

	if (!m)
		return s->modules.unread[0] != '\0';
	return found == SLOT_FOUND_NOTHING || !map || map->shared || map->inode != m->inode;
}

/*
 * A slot that neither holds our gate nor got its old value back. The loader may have bound it over our gate, or its
 * module may have been opened anew in the same place; another tool may have hooked it after us; or the program has done
 * something to its page.
 */
static void count_unrestored(struct session *s, const struct slot *slot, struct torn *torn, struct aftermath *after)
{
	const uint64_t gates = s->payload.block.gates_address;
	const struct elf_module *m = modules_find(&s->modules, slot->address, false);
	struct gate gate = { 0 };
	struct err ignored;

	int rc = target_read(&s->memory, gate_data(gates, slot->gate), &gate, sizeof gate, &ignored);
	enum slot_found found = slot_place_look(slot, gates, rc == 0 ? gate.original : slot->old_value, &s->modules,
	                                        &s->maps, &s->memory);
	switch (found) {
	case SLOT_FOUND_ORIGINAL:
		if (slot->state == SLOT_GONE)
			s->slots_gone++;
		else
			s->slots_restored++;
		return;
	case SLOT_FOUND_CODE:
	case SLOT_FOUND_GATE:
		/* Where a module was unloaded there may be anything; what is called is in a slot that is there. */
		if (found == SLOT_FOUND_CODE && slot->state == SLOT_GONE)
			break;
		after->foreign = true;
		if (s->slots_foreign++ < NAMED_MAX)
			session_add_residue(s, "slot 0x%llx of %s %s", (unsigned long long)slot->address,
			                    m ? elf_module_name(m) : "?", foreign_text(s, slot, found));
		return;
	case SLOT_FOUND_NOTHING:
	case SLOT_FOUND_DATA: break;
	}
	s->slots_gone++;
	if (is_torn(s, slot, found)) {
		/* The page may have been moved, and may come back. */
		after->escapes = true;
		add_torn(s, torn, slot, found);
	}
}

int aftermath_count(struct session *s, struct aftermath *after, struct err *e)
{
	struct slot *slots = NULL;
	struct torn torn = { 0 };
	uint32_t count;

	int rc = session_slots(s, &slots, &count, e);
	if (rc < 0)
		return rc;
	free(s->final_slots);
	s->final_slots = slots;
	s->final_slot_count = count;
	s->slots_patched = s->slots_restored = s->slots_foreign = s->slots_gone = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (slots[i].state == SLOT_REFUSED || slots[i].state == SLOT_EMPTY)
			continue;
		s->slots_patched++;
		after->escapes |= (slots[i].flags & SLOT_ESCAPES) != 0;
		if (slots[i].state == SLOT_RESTORED)
			s->slots_restored++;
		else
			count_unrestored(s, &slots[i], &torn, after);
	}
	say_torn(s, &torn);
	if (s->slots_foreign > NAMED_MAX)
		session_add_residue(s, "%u slots more like these", s->slots_foreign - NAMED_MAX);
	return 0;
}
