/* SPDX-License-Identifier: MIT */
#include "touch/patches/word_patches.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "got/entry_place.h"
#include "process/live_thread.h"
#include "touch/patches/session_entries.h"

void word_patches_free(struct word_patches *w)
{
	free(w->entries);
	free(w->rows);
	*w = (struct word_patches){ 0 };
}

static uint64_t entry_in_list(const struct session *s, uint32_t i)
{
	return s->payload.block.entries_address + i * sizeof(struct got_entry);
}

static int tell_entries(const struct session *s, const struct word_patches *w, struct err *e)
{
	return w->count ? target_write(&s->writer, CHANGE_PAYLOAD, entry_in_list(s, w->first), w->entries,
	                               w->count * sizeof *w->entries, e)
	                : 0;
}

/* The words count as listed once the number of them is written. */
static int append(const struct session *s, struct word_patches *w, struct err *e)
{
	const uint64_t at = s->payload.session + offsetof(struct memattach_session, entry_count);
	uint32_t count;

	int rc = target_read(&s->memory, at, &w->first, sizeof w->first, e);
	if (rc == 0 && (w->first > SESSION_ENTRY_MAX || w->count > SESSION_ENTRY_MAX - w->first))
		rc = err_set(e, ENOSPC, "there is no room for %u GOT entries more", w->count);
	rc = rc ?: tell_entries(s, w, e);
	count = w->first + w->count;
	return rc == 0 ? target_write(&s->writer, CHANGE_PAYLOAD, at, &count, sizeof count, e) : rc;
}

static uint64_t trampoline_of(const struct session *s, const struct got_entry *entry)
{
	return trampoline_address(s->payload.block.trampolines_address, entry->trampoline,
	                          s->view.plan.trampolines[entry->trampoline].hook);
}

static int add_row(struct session *s, const struct got_entry *entry, uint64_t value, struct err *e)
{
	return changes_add(&s->changes, CHANGE_GOT_ENTRY, entry->address, &entry->old_value, &value, sizeof value, e);
}

static int add_rows(struct session *s, struct word_patches *w, struct err *e)
{
	int row = 0;

	w->rows = calloc(w->count + 1u, sizeof *w->rows);
	if (!w->rows)
		return err_set(e, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < w->count && row >= 0; i++)
		w->rows[i] = row = add_row(s, &w->entries[i], trampoline_of(s, &w->entries[i]), e);
	return row < 0 ? row : 0;
}

int word_patches_list(struct session *s, struct word_patches *w, struct err *e)
{
	const struct got_plan *p = &s->view.plan;

	*w = (struct word_patches){ .entries = calloc(p->entry_count + 1, sizeof *w->entries),
		                    .count = (uint32_t)p->entry_count };
	if (!w->entries)
		return err_set(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < p->entry_count; i++)
		w->entries[i] = (struct got_entry){ .address = p->entries[i].address,
			                            .old_value = p->entries[i].value,
			                            .trampoline = p->entries[i].trampoline,
			                            .state = GOT_PATCHED };
	int rc = w->count ? append(s, w, e) : 0;
	rc = rc ?: add_rows(s, w, e);
	if (rc < 0)
		word_patches_free(w);
	return rc;
}

/* Where one is written all the same, or the payload cannot be told, they stay: each says what it holds. */
void word_patches_withdraw(struct session *s, const struct word_patches *w)
{
	const uint64_t at = s->payload.session + offsetof(struct memattach_session, entry_count);

	for (uint32_t i = 0; i < w->count; i++)
		if (s->changes.list[w->rows[i]].state != CHANGE_LISTED)
			return;
	if (!w->count || (size_t)w->rows[w->count - 1] + 1 != s->changes.count)
		return;
	if (target_write(&s->writer, CHANGE_PAYLOAD, at, &w->first, sizeof w->first, ERR_IGNORED) == 0)
		changes_keep(&s->changes, (size_t)w->rows[0]);
}

/* Those of this memattach are in the table in the order of the payload's list; those of another one are added. What the
 * payload says that a word held is what it gets (session_entries.h). */
static int find_rows(struct session *s, struct word_patches *w, struct err *e)
{
	int row = changes_next(&s->changes, CHANGE_GOT_ENTRY, -1), rc = 0;

	w->rows = calloc(w->count + 1u, sizeof *w->rows);
	if (!w->rows)
		return err_set(e, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < w->count && rc >= 0; i++) {
		const struct got_entry *entry = &w->entries[i];
		if (row >= 0 && s->changes.list[row].address == entry->address) {
			w->rows[i] = row;
			memcpy(s->changes.list[row].old, &entry->old_value, sizeof entry->old_value);
			row = changes_next(&s->changes, CHANGE_GOT_ENTRY, row);
			continue;
		}
		w->rows[i] = rc = add_row(s, entry, 0, e);
		if (rc >= 0 && entry->state != GOT_REFUSED)
			changes_set(&s->changes, rc, CHANGE_MADE);
	}
	return rc < 0 ? rc : 0;
}

int word_patches_read(struct session *s, struct word_patches *w, struct err *e)
{
	*w = (struct word_patches){ 0 };
	int rc = session_entries(s, &w->entries, &w->count, e);
	rc = rc ?: find_rows(s, w, e);
	if (rc < 0)
		word_patches_free(w);
	return rc;
}

/* What is mapped at the words now, and what they hold. */
struct words_now {
	struct maps maps;
	uint64_t *list;
	bool *known; /* it could be read */
};

static void words_now_free(struct words_now *now)
{
	maps_free(&now->maps);
	free(now->list);
	free(now->known);
}

/* The end of a file that was cut raises SIGBUS: then each is tried alone. */
static void read_words(const struct session *s, const struct word_patches *w, struct words_now *now,
                       struct target_piece *pieces)
{
	for (uint32_t i = 0; i < w->count; i++)
		pieces[i] = (struct target_piece){ w->entries[i].address, sizeof *now->list, &now->list[i] };
	bool all = target_read_batch(&s->memory, pieces, w->count, ERR_IGNORED) == 0;
	for (uint32_t i = 0; i < w->count; i++)
		now->known[i] = all ||
		                target_read_u64(&s->memory, w->entries[i].address, &now->list[i], ERR_IGNORED) == 0;
}

static int look(const struct session *s, const struct word_patches *w, struct words_now *now, struct err *e)
{
	AUTO_FREE struct target_piece *pieces = calloc(w->count + 1u, sizeof *pieces);
	AUTO_FREE uint64_t *addresses = calloc(w->count + 1u, sizeof *addresses);

	*now = (struct words_now){ .list = calloc(w->count + 1u, sizeof *now->list),
		                   .known = calloc(w->count + 1u, sizeof *now->known) };
	if (!pieces || !addresses || !now->list || !now->known) {
		words_now_free(now);
		return err_set(e, ENOMEM, "out of memory");
	}
	for (uint32_t i = 0; i < w->count; i++)
		addresses[i] = w->entries[i].address;
	int rc = live_thread_maps_at(&s->target, &now->maps, addresses, w->count, e);
	if (rc < 0)
		words_now_free(now);
	else
		read_words(s, w, now, pieces);
	return rc;
}

static enum got_state patch(const struct session *s, const struct word_patches *w, const struct words_now *now,
                            uint32_t i)
{
	const struct got_entry *entry = &w->entries[i];

	if (entry->address % sizeof(uint64_t) || !now->known[i] || now->list[i] != entry->old_value ||
	    !entry_place_is_there(&now->maps, &s->view.maps, entry->address))
		return GOT_REFUSED;
	return target_writer_change(&s->writer, w->rows[i], ERR_IGNORED) == 0 ? GOT_PATCHED : GOT_REFUSED;
}

static enum got_state give_back(const struct session *s, const struct word_patches *w, const struct words_now *now,
                                uint32_t i)
{
	const struct got_entry *entry = &w->entries[i];

	if (entry->address % sizeof(uint64_t) || !now->known[i] ||
	    !entry_place_is_there(&now->maps, NULL, entry->address))
		return GOT_GONE;
	if (now->list[i] == entry->old_value)
		return GOT_RESTORED; /* listed, but memattach died before it was patched */
	if (!trampoline_is(s->payload.block.trampolines_address, entry->trampoline, now->list[i]))
		return GOT_FOREIGN;
	return target_writer_undo(&s->writer, w->rows[i], NULL, ERR_IGNORED) == 0 ? GOT_RESTORED : GOT_PATCHED;
}

int word_patches_write(struct session *s, struct word_patches *w, struct err *e)
{
	struct words_now now;

	int rc = look(s, w, &now, e);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < w->count; i++)
		w->entries[i].state = (uint16_t)patch(s, w, &now, i);
	words_now_free(&now);
	return tell_entries(s, w, e);
}

/* What became of a row whose entry is not in force any more. */
static void note_state(struct changes *c, int row, uint16_t state)
{
	const enum change_state now = state == GOT_RESTORED ? CHANGE_UNDONE
	                              : state == GOT_GONE   ? CHANGE_GONE
	                                                    : CHANGE_STAYS;

	if (c->list[row].state == CHANGE_MADE)
		changes_set(c, row, now);
}

int word_patches_restore(struct session *s, struct word_patches *w, struct err *e)
{
	struct words_now now;

	int rc = look(s, w, &now, e);
	if (rc < 0)
		return rc;
	/* The newest entry of a word, which is the last, decides: all of one word are looked at before the first. */
	for (uint32_t i = 0; i < w->count; i++) {
		if (w->entries[i].state == GOT_PATCHED)
			w->entries[i].state = (uint16_t)give_back(s, w, &now, i);
		note_state(&s->changes, w->rows[i], w->entries[i].state);
	}
	words_now_free(&now);
	return tell_entries(s, w, e);
}

void word_patches_count(struct session *s, const struct word_patches *w)
{
	for (uint32_t i = 0; i < w->count; i++) {
		const bool patched = w->entries[i].state == GOT_PATCHED;

		s->outcome.entries.patched += patched;
		s->outcome.entries.refused += !patched;
	}
}
