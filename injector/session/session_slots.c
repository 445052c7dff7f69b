/* SPDX-License-Identifier: MIT */
/* The slots of a session as they stand in the target. */
#include <stdlib.h>

#include "cleanup.h"
#include "follow.h"
#include "slot_place.h"

#define TABLES_MAX                                                                                                     \
	1024u /* relocation tables that are read in search of a function's name; after that a slot counts as another   \
	         tool's */

int session_slots(struct session *s, struct slot **slots, uint32_t *count, struct err *e)
{
	uint32_t slot_count;

	int rc = target_read(&s->memory, s->payload.session + offsetof(struct memattach_session, slot_count),
	                     &slot_count, sizeof slot_count, e);
	if (rc < 0)
		return rc;
	if (slot_count > SESSION_SLOT_MAX)
		return err_set(e, EPROTO, "the session block in the target is damaged");
	struct slot *list = calloc(slot_count + 1u, sizeof *list);
	if (!list)
		return err_set(e, ENOMEM, "out of memory");
	rc = slot_count ? target_read(&s->memory, s->payload.block.slots_address, list, slot_count * sizeof *list, e)
	                : 0;
	if (rc < 0) {
		free(list);
		return rc;
	}
	*slots = list;
	*count = slot_count;
	return 0;
}

static bool holds_gate(const struct session *s, const struct slot *slot, uint64_t word)
{
	return gate_is(s->payload.block.gates_address, slot->gate, word);
}

/* What is known of the slots as a whole. Their list stands in the target: it may say anything, but it cannot make this
 * take long. */
struct survey {
	const struct session *s;
	const struct slot *slots;
	uint32_t count;
	bool *patched;   /* by module: one of its slots holds our gate, so it is still the image that we patched */
	unsigned tables; /* of relocations that were read */
};

static int take_survey(struct survey *v, const struct session *s, const struct slot *slots, uint32_t count,
                       struct err *e)
{
	struct err ignored;
	uint64_t now;

	*v = (struct survey){
		.s = s, .slots = slots, .count = count, .patched = calloc(s->modules.count + 1, sizeof *v->patched)
	};
	if (!v->patched)
		return err_set(e, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < count; i++) {
		const struct elf_module *home =
			slots[i].state == SLOT_PATCHED ? modules_find(&s->modules, slots[i].address, false) : NULL;
		if (home && !v->patched[home - s->modules.list] &&
		    target_read_u64(&s->memory, slots[i].address, &now, &ignored) == 0)
			v->patched[home - s->modules.list] = holds_gate(s, &slots[i], now);
	}
	return 0;
}

static bool is_hooked(struct survey *v, const struct elf_module *home, uint64_t address, uint64_t now)
{
	return v->tables++ >= TABLES_MAX || slot_place_is_hooked(home, &v->s->memory, address, now);
}

/*
 * Does the word tell that a slot is not ours any more? One that holds our gate is ours, whatever became of its module's
 * headers, and one that cannot be read may come back with its page. A fresh module in the same place (closed and opened
 * again) holds what the loader wrote: the value as before the patch, or the way to the loader. In a module that we have
 * patched an address of its own code is another tool's hook; so it is in the place of a listed function, though nothing
 * of what we have patched be left there.
 */
static bool is_gone(struct survey *v, const struct slot *slot)
{
	const struct session *s = v->s;
	const struct elf_module *home = modules_find(&s->modules, slot->address, false);
	uint64_t now;
	struct err ignored;

	if (target_read_u64(&s->memory, slot->address, &now, &ignored) < 0 || holds_gate(s, slot, now))
		return false;
	if (!home || now == slot->old_value)
		return true;
	return modules_find(&s->modules, now, true) == home && !v->patched[home - s->modules.list] &&
	       !is_hooked(v, home, slot->address, now);
}

/*
 * Is there no other entry for the same word that is in force, or newer? A module that was opened again in place has
 * been patched again, and the newest of many entries is near the end.
 */
static bool is_newest(const struct slot *slots, uint32_t count, uint32_t i)
{
	for (uint32_t k = count; k-- > 0;)
		if (slots[k].address == slots[i].address && k != i && (k > i || slots[k].state == SLOT_PATCHED))
			return false;
	return true;
}

/* Does a word that was given up hold our gate again? Whoever had taken it has put the gate back. */
static bool is_back(const struct session *s, const struct slot *slots, uint32_t count, uint32_t i)
{
	uint64_t now;
	struct err ignored;

	return slots[i].state == SLOT_GONE && modules_find(&s->modules, slots[i].address, false) &&
	       target_read_u64(&s->memory, slots[i].address, &now, &ignored) == 0 && holds_gate(s, &slots[i], now) &&
	       is_newest(slots, count, i);
}

static int change_state(struct session *s, uint32_t i, uint16_t state, struct err *e)
{
	return target_write(&s->writer,
	                    s->payload.block.slots_address + i * sizeof(struct slot) + offsetof(struct slot, state),
	                    &state, sizeof state, e);
}

/*
 * It is ours again, and gets the original: that is what the gate stands for, wherever the word is; what was there
 * before the patch may have been the way to the loader in a module that is not there any more.
 */
static int take_back(struct session *s, const struct slot *slot, uint32_t i, struct err *e)
{
	const uint64_t at = s->payload.block.slots_address + i * sizeof(struct slot) + offsetof(struct slot, old_value);
	struct gate gate;

	int rc = target_read(&s->memory, gate_data(s->payload.block.gates_address, slot->gate), &gate, sizeof gate, e);
	if (rc == 0)
		rc = target_write(&s->writer, at, &gate.original, sizeof gate.original, e);
	return rc == 0 ? change_state(s, i, SLOT_PATCHED, e) : rc;
}

int session_mark_gone(struct session *s, struct err *e)
{
	AUTO_FREE struct slot *slots = NULL;
	struct survey survey = { 0 };
	uint32_t count = 0;

	int rc = session_slots(s, &slots, &count, e);
	if (rc == 0)
		rc = take_survey(&survey, s, slots, count, e);
	for (uint32_t i = 0; i < count && rc == 0; i++) {
		if (slots[i].state == SLOT_PATCHED && is_gone(&survey, &slots[i]))
			rc = change_state(s, i, SLOT_GONE, e);
		else if (is_back(s, slots, count, i))
			rc = take_back(s, &slots[i], i, e);
	}
	free(survey.patched);
	return rc;
}

int session_watch(struct session *s, struct err *e)
{
	AUTO_FREE struct slot *slots = NULL;
	uint32_t count = 0;
	const struct elf_module *last = NULL;

	int rc = session_slots(s, &slots, &count, e);
	for (uint32_t i = 0; i < count && rc == 0; i++) {
		const struct elf_module *m = modules_find(&s->modules, slots[i].address, false);
		uint64_t now;
		struct err ignored;
		/* A word that is not ours any more, or out of reach, would look like a change for ever. */
		if (slots[i].state != SLOT_PATCHED || !m || m == last ||
		    target_read_u64(&s->memory, slots[i].address, &now, &ignored) < 0 || !holds_gate(s, &slots[i], now))
			continue;
		last = m;
		rc = modules_watch_word(&s->modules, slots[i].address, now, e);
	}
	return rc;
}
