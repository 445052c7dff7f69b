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

int session_mark_gone(struct session *s, struct err *e)
{
	AUTO_FREE struct slot *slots = NULL;
	uint32_t count = 0;

	int rc = session_slots(s, &slots, &count, e);
	for (uint32_t i = 0; i < count && rc == 0; i++) {
		uint64_t now, gate = s->payload.block.gates_address + slots[i].gate * GATE_CODE_BYTES;
		const uint16_t gone = SLOT_GONE;
		struct err ignored;
		bool there = modules_find(&s->modules, slots[i].address, false) != NULL;
		/* A fresh module in the same place (closed and opened again) holds what the loader wrote, as before the patch. */
		bool fresh = there && target_read_u64(&s->memory, slots[i].address, &now, &ignored) == 0 && now != gate &&
			     now == slots[i].old_value;
		if (slots[i].state != SLOT_PATCHED || (there && !fresh))
			continue;
		rc = target_write(&s->writer, s->payload.block.slots_address + i * sizeof *slots + offsetof(struct slot, state),
				  &gone, sizeof gone, e);
	}
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
		if (slots[i].state != SLOT_PATCHED || !m || m == last)
			continue;
		last = m;
		rc = modules_watch_word(&s->modules, slots[i].address,
					s->payload.block.gates_address + slots[i].gate * GATE_CODE_BYTES, e);
	}
	return rc;
}
