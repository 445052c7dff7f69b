/* SPDX-License-Identifier: MIT */
#include "touch/patches/code_patches.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "arch/detour_code.h"
#include "arch/instruction.h"

/* ---- the list ---- */

static void add_row(struct code_rows *rows, uint32_t trampoline, uint64_t address, const void *old, const void *new,
                    uint8_t bytes, enum code_patch_kind kind)
{
	struct code_patch *row = &rows->list[rows->count++];

	_Static_assert(2 * ENTRY_HOOKS_MAX + PYTHON_WORDS_MAX <= SESSION_CODE_PATCH_MAX, "rows");
	*row = (struct code_patch){
		.address = address, .bytes = bytes, .kind = kind, .trampoline = (uint16_t)trampoline
	};
	memcpy(row->old_code, old, bytes);
	memcpy(row->new_code, new, bytes);
}

static int rows_of_hook(const struct session *s, const struct entry_hook *hook, struct code_rows *rows, struct err *e)
{
	const struct entry_code_plan *plan = &hook->plan;
	struct entry_code_patch patch;
	uint8_t old[ENTRY_JUMP_BYTES];

	int rc = entry_code_patch_make(&patch, plan, hook->detour + detour_code_enter_at(hook->keeps, &plan->undo), e);
	if (rc == 0 && plan->island)
		rc = target_read(&s->memory, plan->island, old, sizeof old, e);
	if (rc < 0)
		return rc;
	if (plan->island)
		add_row(rows, hook->trampoline, plan->island, old, patch.island, ENTRY_JUMP_BYTES, CODE_ISLAND);
	add_row(rows, hook->trampoline, plan->write_at, plan->code + (plan->write_at - hook->address), patch.jump,
	        plan->write_bytes, CODE_JUMP);
	return 0;
}

int code_patches_list(struct session *s, struct code_rows *rows, struct err *e)
{
	int rc = 0;

	rows->count = 0;
	if (!s->hooks.count)
		return 0;
	for (size_t i = 0; i < s->hooks.count && rc == 0; i++)
		rc = rows_of_hook(s, &s->hooks.list[i], rows, e);
	for (unsigned i = 0; i < s->python.functions.word_count; i++) {
		const struct python_word *word = &s->python.functions.words[i];
		add_row(rows, 0, word->address, &word->value, &word->alias, sizeof word->value, CODE_WORD);
	}
	if (rc < 0)
		return rc;
	free(s->hooks.rows);
	s->hooks.row_count = 0;
	s->hooks.rows = malloc(sizeof rows->list);
	if (!s->hooks.rows)
		return err_set(e, ENOMEM, "out of memory");
	memset(s->hooks.rows, 0, sizeof rows->list);
	memcpy(s->hooks.rows, rows->list, rows->count * sizeof *rows->list);
	s->hooks.row_count = rows->count;
	return target_write(&s->writer, s->payload.block.code_patches_address, rows->list,
	                    rows->count * sizeof *rows->list, e);
}

static bool is_sound(const struct session *s, const struct code_patch *row)
{
	const struct mapping *m = maps_find(&s->view.maps, row->address);

	if (!row->bytes || row->bytes > sizeof row->old_code || !m || row->address + row->bytes > m->end)
		return false;
	return row->kind != CODE_WORD ? m->prot & PROT_EXEC
	                              : !m->shared && row->bytes == sizeof(uint64_t) && row->address % row->bytes == 0;
}

/* In the target the program may have written, and what makes no sense is passed over. */
int code_patches_read(const struct session *s, struct code_rows *rows, struct err *e)
{
	const uint64_t at = s->payload.block.code_patches_address;
	struct code_rows all;

	int rc = 0;

	rows->count = 0;
	if (!at && !s->hooks.row_count)
		return 0;
	if (s->hooks.row_count)
		memcpy(all.list, s->hooks.rows, sizeof all.list);
	else
		rc = target_read(&s->memory, at, all.list, sizeof all.list, e);
	for (unsigned i = 0; rc == 0 && i < SESSION_CODE_PATCH_MAX; i++)
		if (is_sound(s, &all.list[i]))
			rows->list[rows->count++] = all.list[i];
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
		const bool probed = !exactly && now[i] == INSTRUCTION_BREAKPOINT && from[i] != INSTRUCTION_BREAKPOINT;

		if (now[i] != from[i] && !probed)
			return false;
		write[i] = probed ? INSTRUCTION_BREAKPOINT : to[i];
	}
	return true;
}

/* But for breakpoints in code. */
static bool is_old_code(const struct code_patch *row, const uint8_t *now)
{
	for (unsigned i = 0; i < row->bytes; i++)
		if (now[i] != row->old_code[i] && (now[i] != INSTRUCTION_BREAKPOINT || row->kind == CODE_WORD))
			return false;
	return true;
}

/* Rows of one kind whose bytes are what they are expected to be. *others: how many have something else. */
static int change_rows(const struct session *s, const struct code_rows *rows, enum code_patch_kind kind, bool to_new,
                       unsigned *changed, unsigned *others, struct err *e)
{
	uint8_t now[sizeof rows->list[0].old_code], write[sizeof now];
	int rc = 0;

	for (unsigned i = 0; i < rows->count && rc == 0; i++) {
		const struct code_patch *row = &rows->list[i];
		const uint8_t *from = to_new ? row->old_code : row->new_code;
		const uint8_t *to = to_new ? row->new_code : row->old_code;
		if (row->kind != kind)
			continue;
		rc = target_read(&s->memory, row->address, now, row->bytes, e);
		if (rc == -EFAULT) { /* unmapped since, or never ours */
			++*others;
			rc = 0;
			continue;
		}
		if (rc < 0)
			break;
		if (to_new ? !memcmp(now, to, row->bytes) : is_old_code(row, now))
			continue;
		if (!what_to_write(write, now, from, to, row->bytes, to_new || kind == CODE_WORD)) {
			++*others;
			continue;
		}
		rc = target_write(&s->writer, row->address, write, row->bytes, e);
		*changed += rc == 0;
	}
	return rc;
}

int code_patches_write(struct session *s, const struct code_rows *rows, struct err *e)
{
	static const enum code_patch_kind order[] = { CODE_ISLAND, CODE_JUMP, CODE_WORD };
	unsigned changed = 0, others = 0;
	int rc = 0;

	for (unsigned i = 0; i < sizeof order / sizeof *order && rc == 0 && !others; i++)
		rc = change_rows(s, rows, order[i], true, &changed, &others, e);
	if (rc == 0 && others)
		rc = err_set(e, EBUSY, "somebody else has changed the code of an allocation function meanwhile");
	return rc;
}

int code_patches_restore(const struct session *s, const struct code_rows *rows, struct code_patches_result *result,
                         struct err *e)
{
	unsigned words = 0, others = 0;

	int rc = change_rows(s, rows, CODE_WORD, false, &words, &others, e);
	return rc < 0 ? rc : change_rows(s, rows, CODE_JUMP, false, &result->written, &result->foreign, e);
}

void code_patches_count(const struct session *s, const struct code_rows *rows, struct code_patches_result *result)
{
	uint8_t now[sizeof rows->list[0].old_code];
	struct err ignored;

	for (unsigned i = 0; i < rows->count; i++) {
		const struct code_patch *row = &rows->list[i];
		const bool there = target_read(&s->memory, row->address, now, row->bytes, &ignored) == 0;
		const bool old = there && is_old_code(row, now);
		if (row->kind == CODE_WORD) {
			result->words.patched++;
			result->words.restored += old;
			result->words.foreign += there && !old;
			result->words.gone += !there;
		}
		result->restored += row->kind == CODE_JUMP && old;
	}
}

unsigned code_patches_islands(const struct session *s, struct quiesce_range *ranges, unsigned max)
{
	uint8_t now[sizeof((struct code_patch *)0)->new_code];
	struct code_rows rows;
	struct err ignored;
	unsigned count = 0;

	if (code_patches_read(s, &rows, &ignored) < 0)
		return 0;
	for (unsigned i = 0; i < rows.count && count < max; i++) {
		const struct code_patch *row = &rows.list[i];
		if (row->kind == CODE_ISLAND && !target_read(&s->memory, row->address, now, row->bytes, &ignored) &&
		    !memcmp(now, row->new_code, row->bytes))
			ranges[count++] = (struct quiesce_range){ row->address, row->address + row->bytes };
	}
	return count;
}

int code_patches_remove_islands(const struct session *s, struct err *e)
{
	unsigned changed = 0, others = 0;
	struct code_rows rows;

	int rc = code_patches_read(s, &rows, e);
	return rc < 0 ? rc : change_rows(s, &rows, CODE_ISLAND, false, &changed, &others, e);
}
