/* SPDX-License-Identifier: MIT */
/* The GOT entries of a session as they are in the target. */
#include "touch/patches/session_entries.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "got/entry_place.h"

#define TABLES_MAX                                                                                                     \
	1024u /* relocation tables that are read in search of a function's name; after that a GOT entry counts as      \
	         another tool's */

int session_entries(struct session *s, struct got_entry **entries, uint32_t *count, struct err *e)
{
	uint32_t entry_count;

	int rc = target_read(&s->memory, s->payload.session + offsetof(struct memattach_session, entry_count),
	                     &entry_count, sizeof entry_count, e);
	if (rc < 0)
		return rc;
	if (entry_count > SESSION_ENTRY_MAX)
		return err_set(e, EPROTO, "the session block in the target is damaged");
	struct got_entry *list = calloc(entry_count + 1u, sizeof *list);
	if (!list)
		return err_set(e, ENOMEM, "out of memory");
	rc = entry_count
	             ? target_read(&s->memory, s->payload.block.entries_address, list, entry_count * sizeof *list, e)
	             : 0;
	if (rc < 0) {
		free(list);
		return rc;
	}
	*entries = list;
	*count = entry_count;
	return 0;
}

static bool holds_trampoline(const struct session *s, const struct got_entry *entry, uint64_t word)
{
	return trampoline_is(s->payload.block.trampolines_address, entry->trampoline, word);
}

/* What is known of the GOT entries as a whole. Their list is in the target: it may say anything, but it cannot make
 * this take long. */
struct survey {
	const struct session *s;
	const struct got_entry *entries;
	uint32_t count;
	bool *patched;   /* by module: one of its GOT entries holds our trampoline, so it is still the image that we
	                    patched */
	unsigned tables; /* of relocations that were read */
};

static int take_survey(struct survey *v, const struct session *s, const struct got_entry *entries, uint32_t count,
                       struct err *e)
{
	uint64_t now;

	*v = (struct survey){ .s = s,
		              .entries = entries,
		              .count = count,
		              .patched = calloc(s->view.modules.count + 1, sizeof *v->patched) };
	if (!v->patched)
		return err_set(e, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < count; i++) {
		const struct elf_module *home = entries[i].state == GOT_PATCHED
		                                        ? modules_find(&s->view.modules, entries[i].address, false)
		                                        : NULL;
		if (home && !v->patched[home - s->view.modules.list] &&
		    target_read_u64(&s->memory, entries[i].address, &now, ERR_IGNORED) == 0)
			v->patched[home - s->view.modules.list] = holds_trampoline(s, &entries[i], now);
	}
	return 0;
}

static bool is_hooked(struct survey *v, const struct elf_module *home, uint64_t address, uint64_t now)
{
	return v->tables++ >= TABLES_MAX || entry_place_is_hooked(home, &v->s->memory, address, now);
}

/*
 * Was the module of a GOT entry unloaded, so that the word is not ours any more? (Another copy of it may have been
 * loaded in the same place since.)
 *
 *     the word                                                                      gone?
 *     cannot be read                                                                no: its page may come back
 *     holds our trampoline                                                          no: it is ours
 *     is in no module                                                               yes
 *     holds its old value                                                           yes: the loader has written it anew
 *     holds an address outside of its module                                        no: another tool's hook
 *     holds an address inside, and other words of the module hold our trampolines   no: another tool's hook
 *     … none do, but it is the place of a listed function and holds no lazy stub    no: another tool's hook
 *     … none do, else                                                               yes: the loader has written it anew
 */
static bool is_gone(struct survey *v, const struct got_entry *entry)
{
	const struct session *s = v->s;
	const struct elf_module *home = modules_find(&s->view.modules, entry->address, false);
	uint64_t now;

	if (target_read_u64(&s->memory, entry->address, &now, ERR_IGNORED) < 0 || holds_trampoline(s, entry, now))
		return false;
	if (!home || now == entry->old_value)
		return true;
	return modules_find(&s->view.modules, now, true) == home && !v->patched[home - s->view.modules.list] &&
	       !is_hooked(v, home, entry->address, now);
}

/*
 * Is there no other entry for the same word that is in force, or newer? A module that was opened again in place has
 * been patched again, and the newest of many entries is near the end.
 */
static bool is_newest(const struct got_entry *entries, uint32_t count, uint32_t i)
{
	for (uint32_t k = count; k-- > 0;)
		if (entries[k].address == entries[i].address && k != i && (k > i || entries[k].state == GOT_PATCHED))
			return false;
	return true;
}

/* Does a word that was given up hold our trampoline again? Whoever had taken it has put the trampoline back. */
static bool is_back(const struct session *s, const struct got_entry *entries, uint32_t count, uint32_t i)
{
	uint64_t now;

	return entries[i].state == GOT_GONE && modules_find(&s->view.modules, entries[i].address, false) &&
	       target_read_u64(&s->memory, entries[i].address, &now, ERR_IGNORED) == 0 &&
	       holds_trampoline(s, &entries[i], now) && is_newest(entries, count, i);
}

static int change_state(struct session *s, uint32_t i, uint16_t state, struct err *e)
{
	return target_write(&s->writer, CHANGE_PAYLOAD,
	                    s->payload.block.entries_address + i * sizeof(struct got_entry) +
	                            offsetof(struct got_entry, state),
	                    &state, sizeof state, e);
}

/*
 * It is ours again, and gets the original: that is what the trampoline stands for, wherever the word is; what was there
 * before the patch may have been the way to the loader in a module that is not there any more.
 */
static int take_back(struct session *s, const struct got_entry *entry, uint32_t i, struct err *e)
{
	const uint64_t at =
		s->payload.block.entries_address + i * sizeof(struct got_entry) + offsetof(struct got_entry, old_value);
	struct trampoline trampoline;

	int rc = target_read(&s->memory, trampoline_data(s->payload.block.trampolines_address, entry->trampoline),
	                     &trampoline, sizeof trampoline, e);
	rc = rc ?: target_write(&s->writer, CHANGE_PAYLOAD, at, &trampoline.original, sizeof trampoline.original, e);
	return rc == 0 ? change_state(s, i, GOT_PATCHED, e) : rc;
}

int session_entries_mark_gone(struct session *s, struct err *e)
{
	AUTO_FREE struct got_entry *entries = NULL;
	struct survey survey = { 0 };
	uint32_t count = 0;

	int rc = session_entries(s, &entries, &count, e);
	rc = rc ?: take_survey(&survey, s, entries, count, e);
	for (uint32_t i = 0; i < count && rc == 0; i++) {
		if (entries[i].state == GOT_PATCHED && is_gone(&survey, &entries[i]))
			rc = change_state(s, i, GOT_GONE, e);
		else if (is_back(s, entries, count, i))
			rc = take_back(s, &entries[i], i, e);
	}
	free(survey.patched);
	return rc;
}

int session_entries_watch(struct session *s, uint32_t *watched, struct err *e)
{
	AUTO_FREE struct got_entry *entries = NULL;
	uint32_t count = 0;
	const struct elf_module *last = NULL;

	int rc = session_entries(s, &entries, &count, e);
	for (uint32_t i = 0; i < count && rc == 0; i++) {
		const struct elf_module *m = modules_find(&s->view.modules, entries[i].address, false);
		uint64_t now = 0;

		if (entries[i].state != GOT_PATCHED || !m || m == last)
			continue;
		bool ours = target_read_u64(&s->memory, entries[i].address, &now, ERR_IGNORED) == 0 &&
		            holds_trampoline(s, &entries[i], now);
		if (!ours && i < *watched)
			continue;
		last = m;
		rc = modules_watch_word(&s->view.modules, entries[i].address,
		                        ours ? now : s->payload.block.trampolines_address, e);
	}
	*watched = count;
	return rc;
}
