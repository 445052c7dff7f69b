/* SPDX-License-Identifier: MIT */
/* The slots of a session as they stand in the target. */
#include <stdlib.h>

#include "cleanup.h"
#include "follow.h"

int session_slots(struct session *s, struct slot **slots, uint32_t *count, struct err *e)
{
	uint32_t slot_count;

	int rc = target_read(&s->memory, s->payload.session + offsetof(struct memattach_session, slot_count), &slot_count,
			     sizeof slot_count, e);
	if (rc < 0)
		return rc;
	if (slot_count > SESSION_SLOT_MAX)
		return err_set(e, EPROTO, "the session block in the target is damaged");
	struct slot *list = calloc(slot_count + 1u, sizeof *list);
	if (!list)
		return err_set(e, ENOMEM, "out of memory");
	rc = slot_count ? target_read(&s->memory, s->payload.block.slots_address, list, slot_count * sizeof *list, e) : 0;
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

/* Is it still the image that we patched? Then at least one of its slots holds our gate. */
static bool is_patched(const struct session *s, const struct elf_module *home, const struct slot *slots, uint32_t count)
{
	struct err ignored;
	uint64_t now;

	for (uint32_t i = 0; i < count; i++)
		if (slots[i].state == SLOT_PATCHED && modules_find(&s->modules, slots[i].address, false) == home &&
		    target_read_u64(&s->memory, slots[i].address, &now, &ignored) == 0 && holds_gate(s, &slots[i], now))
			return true;
	return false;
}

/*
 * Does the word tell that a slot is not ours any more? One that holds our gate is ours, whatever became of its module's headers, and one that cannot be read
 * may come back with its page. A fresh module in the same place (closed and opened again) holds what the loader wrote: the value as before the
 * patch, or the way to the loader. In a module that we have patched an address of its own code is another tool's hook.
 */
static bool is_gone(const struct session *s, const struct slot *slot, const struct slot *slots, uint32_t count)
{
	const struct elf_module *home = modules_find(&s->modules, slot->address, false);
	uint64_t now;
	struct err ignored;

	if (target_read_u64(&s->memory, slot->address, &now, &ignored) < 0 || holds_gate(s, slot, now))
		return false;
	if (!home || now == slot->old_value)
		return true;
	return modules_find(&s->modules, now, true) == home && !is_patched(s, home, slots, count);
}

int session_mark_gone(struct session *s, struct err *e)
{
	AUTO_FREE struct slot *slots = NULL;
	const uint16_t gone = SLOT_GONE;
	uint32_t count = 0;

	int rc = session_slots(s, &slots, &count, e);
	for (uint32_t i = 0; i < count && rc == 0; i++)
		if (slots[i].state == SLOT_PATCHED && is_gone(s, &slots[i], slots, count))
			rc = target_write(&s->writer, s->payload.block.slots_address + i * sizeof *slots + offsetof(struct slot, state),
					  &gone, sizeof gone, e);
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
