/* SPDX-License-Identifier: MIT */
#include "touch/patches/code_patches.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "arch/detour_code.h"
#include "arch/instruction.h"

/* Kinds of this file, by the numbers that they have in the payload's list. */
static const enum change_kind kinds[] = {
	[CODE_JUMP] = CHANGE_JUMP, [CODE_ISLAND] = CHANGE_ISLAND, [CODE_WORD] = CHANGE_PYTHON_WORD
};

/* ---- the list ---- */

/* As the payload lists them. */
struct code_rows {
	struct code_patch list[SESSION_CODE_PATCH_MAX];
	unsigned count;
};

/* What is written where. */
struct writing {
	enum code_patch_kind kind;
	uint64_t address;
	const void *old, *new;
	uint8_t bytes;
	uint32_t trampoline;
};

static int add_row(struct session *s, struct code_rows *rows, const struct writing *w, struct err *e)
{
	struct code_patch *row = &rows->list[rows->count++];

	_Static_assert(2 * ENTRY_HOOKS_MAX + PYTHON_WORDS_MAX <= SESSION_CODE_PATCH_MAX, "rows");
	*row = (struct code_patch){
		.address = w->address, .bytes = w->bytes, .kind = w->kind, .trampoline = (uint16_t)w->trampoline
	};
	memcpy(row->old_code, w->old, w->bytes);
	memcpy(row->new_code, w->new, w->bytes);
	int rc = changes_add(&s->changes, kinds[w->kind], w->address, w->old, w->new, w->bytes, e);
	return rc < 0 ? rc : 0;
}

static int rows_of_hook(struct session *s, const struct entry_hook *hook, struct code_rows *rows, struct err *e)
{
	const struct entry_code_plan *plan = &hook->plan;
	struct entry_code_patch patch;
	uint8_t old[ENTRY_JUMP_BYTES];

	int rc = entry_code_patch_make(&patch, plan, hook->detour + detour_code_enter_at(hook->keeps, &plan->undo), e);
	const struct writing island = { CODE_ISLAND, plan->island, old, patch.island, sizeof old, hook->trampoline };
	const struct writing jump = { CODE_JUMP,  plan->write_at,    plan->code + (plan->write_at - hook->address),
		                      patch.jump, plan->write_bytes, hook->trampoline };
	if (plan->island) {
		rc = rc ?: target_read(&s->memory, plan->island, old, sizeof old, e);
		rc = rc ?: add_row(s, rows, &island, e);
	}
	return rc ?: add_row(s, rows, &jump, e);
}

int code_patches_list(struct session *s, struct err *e)
{
	struct code_rows rows = { .count = 0 };
	int rc = 0;

	for (size_t i = 0; i < s->hooks.count && rc == 0; i++)
		rc = rows_of_hook(s, &s->hooks.list[i], &rows, e);
	for (unsigned i = 0; i < s->python.functions.word_count && rc == 0 && s->hooks.count; i++) {
		const struct python_word *word = &s->python.functions.words[i];
		rc = add_row(s, &rows,
		             &(struct writing){ CODE_WORD, word->address, &word->value, &word->alias,
		                                sizeof word->value, 0 },
		             e);
	}
	return rc == 0 && rows.count ? target_write(&s->writer, CHANGE_PAYLOAD, s->payload.block.code_patches_address,
	                                            rows.list, rows.count * sizeof *rows.list, e)
	                             : rc;
}

static bool is_sound(const struct session *s, uint64_t address, unsigned bytes, enum change_kind kind)
{
	const struct mapping *m = maps_find(&s->view.maps, address);

	if (!bytes || bytes > CHANGE_BYTES || !m || address + bytes > m->end)
		return false;
	return kind != CHANGE_PYTHON_WORD ? m->prot & PROT_EXEC
	                                  : !m->shared && bytes == sizeof(uint64_t) && address % bytes == 0;
}

static bool has_rows(const struct session *s)
{
	bool found = false;

	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
		found |= changes_next(&s->changes, kinds[i], -1) >= 0;
	return found;
}

/* Whether a row is in force its bytes tell, so it counts as made. In the target the program may have written, and what
 * makes no sense is passed over. All or none: half of them would be taken for all of them the next time. */
int code_patches_adopt(struct session *s, struct err *e)
{
	const uint64_t at = s->payload.block.code_patches_address;
	const size_t before = s->changes.count;
	struct code_rows all;

	if (!at || has_rows(s))
		return 0;
	int rc = target_read(&s->memory, at, all.list, sizeof all.list, e);
	for (unsigned i = 0; rc == 0 && i < SESSION_CODE_PATCH_MAX; i++) {
		const struct code_patch *p = &all.list[i];
		if (p->kind > CODE_WORD || !is_sound(s, p->address, p->bytes, kinds[p->kind]))
			continue;
		int row = changes_add(&s->changes, kinds[p->kind], p->address, p->old_code, p->new_code, p->bytes, e);
		if (row >= 0)
			changes_set(&s->changes, row, CHANGE_MADE);
		else
			rc = row;
	}
	if (rc < 0)
		changes_keep(&s->changes, before);
	return rc;
}

/* ---- the changes ---- */

/*
 * What to write where `now` is, for `to` in the place of `from`. The breakpoint of a uprobe that was put there stays if
 * it is taken back: what the kernel makes of it is what the file has, and that comes back around it. False: neither of
 * the two is there.
 */
static bool what_to_write(uint8_t *write, const uint8_t *now, const uint8_t *from, const uint8_t *to, unsigned bytes,
                          bool exactly)
{
	for (unsigned i = 0; i < bytes; i++) {
		const bool probed = !exactly && instruction_is_breakpoint(now[i]) &&
		                    !instruction_is_breakpoint(from[i]);

		if (now[i] != from[i] && !probed)
			return false;
		write[i] = probed ? now[i] : to[i];
	}
	return true;
}

/* But for breakpoints in code. */
static bool is_old_code(const struct change *row, const uint8_t *now)
{
	for (unsigned i = 0; i < row->bytes; i++)
		if (now[i] != row->old[i] && (!instruction_is_breakpoint(now[i]) || row->kind == CHANGE_PYTHON_WORD))
			return false;
	return true;
}

/* The rows of one kind, as they were listed; the number of those that are made. -EBUSY: one has other bytes. */
static int make_rows(struct session *s, enum change_kind kind, struct err *e)
{
	uint8_t now[CHANGE_BYTES];
	int rc = 0;

	for (int i = -1; rc == 0 && (i = changes_next(&s->changes, kind, i)) >= 0;) {
		const struct change *row = &s->changes.list[i];
		rc = target_read(&s->memory, row->address, now, row->bytes, e);
		if (rc == 0 && memcmp(now, row->old, row->bytes) != 0 && memcmp(now, row->new, row->bytes) != 0)
			rc = err_set(e, EBUSY,
			             "somebody else has changed the code of an allocation function meanwhile");
		rc = rc ?: target_writer_change(&s->writer, i, e);
	}
	return rc;
}

/* Backwards, those whose bytes are what they are expected to be. *foreign: how many have something else. */
static int undo_rows(struct session *s, enum change_kind kind, unsigned *undone, unsigned *foreign, struct err *e)
{
	uint8_t now[CHANGE_BYTES], write[CHANGE_BYTES];
	int rc = 0;

	for (int i = -1; rc == 0 && (i = changes_before(&s->changes, kind, i)) >= 0;) {
		const struct change *row = &s->changes.list[i];
		if (!is_sound(s, row->address, row->bytes, kind)) {
			changes_set(&s->changes, i, CHANGE_GONE);
			continue;
		}
		rc = target_read(&s->memory, row->address, now, row->bytes, e);
		if (rc == -EFAULT) { /* unmapped since, or never ours */
			changes_set(&s->changes, i, CHANGE_GONE);
			++*foreign;
			rc = 0;
		} else if (rc == 0 && is_old_code(row, now)) {
			changes_set(&s->changes, i, row->state == CHANGE_LISTED ? CHANGE_LISTED : CHANGE_UNDONE);
		} else if (rc == 0 &&
		           !what_to_write(write, now, row->new, row->old, row->bytes, kind == CHANGE_PYTHON_WORD)) {
			changes_set(&s->changes, i, CHANGE_STAYS);
			++*foreign;
		} else if (rc == 0) {
			rc = target_writer_undo(&s->writer, i, write, e);
			*undone += rc == 0;
		}
	}
	return rc;
}

int code_patches_write(struct session *s, struct err *e)
{
	int rc = make_rows(s, CHANGE_ISLAND, e);

	rc = rc ?: make_rows(s, CHANGE_JUMP, e);
	return rc == 0 ? make_rows(s, CHANGE_PYTHON_WORD, e) : rc;
}

int code_patches_restore(struct session *s, struct code_patches_result *result, struct err *e)
{
	unsigned words = 0, foreign = 0;

	int rc = undo_rows(s, CHANGE_PYTHON_WORD, &words, &foreign, e);
	return rc < 0 ? rc : undo_rows(s, CHANGE_JUMP, &result->written, &result->foreign, e);
}

/* What the row's place holds now: 1 the old bytes, 0 others, -1 it cannot be read. */
static int holds_old(const struct session *s, const struct change *row)
{
	uint8_t now[CHANGE_BYTES];

	if (target_read(&s->memory, row->address, now, row->bytes, ERR_IGNORED) < 0)
		return -1;
	return is_old_code(row, now);
}

void code_patches_count(const struct session *s, struct code_patches_result *result)
{
	for (int i = -1; (i = changes_next(&s->changes, CHANGE_PYTHON_WORD, i)) >= 0;) {
		const int old = holds_old(s, &s->changes.list[i]);
		result->words.patched++;
		result->words.restored += old == 1;
		result->words.foreign += old == 0;
		result->words.gone += old < 0;
	}
	for (int i = -1; (i = changes_next(&s->changes, CHANGE_JUMP, i)) >= 0;)
		result->restored += holds_old(s, &s->changes.list[i]) == 1;
}

unsigned code_patches_islands(const struct session *s, struct address_range *ranges, unsigned max)
{
	uint8_t now[CHANGE_BYTES];
	unsigned count = 0;

	for (int i = -1; (i = changes_next(&s->changes, CHANGE_ISLAND, i)) >= 0 && count < max;) {
		const struct change *row = &s->changes.list[i];
		if (!target_read(&s->memory, row->address, now, row->bytes, ERR_IGNORED) &&
		    !memcmp(now, row->new, row->bytes))
			ranges[count++] = (struct address_range){ row->address, row->address + row->bytes };
	}
	return count;
}

int code_patches_remove_islands(struct session *s, struct err *e)
{
	unsigned undone = 0, foreign = 0;

	return undo_rows(s, CHANGE_ISLAND, &undone, &foreign, e);
}
