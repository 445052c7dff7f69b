/* SPDX-License-Identifier: MIT */
#include "run/steps/late_modules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/steps/attach.h"
#include "base/cleanup.h"
#include "run/steps/inspect.h"
#include "run/steps/plan.h"
#include "session/record.h"
#include "touch/patches/recording.h"
#include "touch/patches/session_entries.h"

#define TRIES_MAX 6u
#define TRY_AGAIN_NS 1000000000ull /* after the first try; twice as long after each further one */
#define SAID_AFTER 2u              /* tries */

/* GOT entries that are patched now, for planning the others. */
static int patched_entries(struct session *s, struct got_entry **entries, size_t *count, struct err *e)
{
	uint32_t entry_count = 0;

	int rc = session_entries(s, entries, &entry_count, e);
	*count = 0;
	for (uint32_t i = 0; i < entry_count && rc == 0; i++)
		if ((*entries)[i].state == GOT_PATCHED)
			(*entries)[(*count)++] = (*entries)[i];
	return rc;
}

/* The trampolines in force, as plans want them. */
static int trampolines_in_force(struct session *s, struct control_trampoline **trampolines, size_t *count,
                                struct err *e)
{
	*count = s->view.plan.trampoline_count;
	*trampolines = calloc(*count + 1, sizeof **trampolines);
	if (!*trampolines)
		return err_set(e, ENOMEM, "out of memory");
	memcpy(*trampolines, s->view.plan.trampolines, *count * sizeof **trampolines);
	return 0;
}

/* A look drops the plan before it. Where no new one could be made its trampolines stay: the next plan goes on from
 * their numbers, which words in the target stand for. */
static void keep_trampolines(struct session *s, struct control_trampoline **trampolines, size_t count)
{
	if (s->view.plan.trampoline_count >= count)
		return;
	got_plan_free(&s->view.plan);
	s->view.plan = (struct got_plan){ .trampolines = *trampolines, .trampoline_count = count };
	*trampolines = NULL;
}

/* What is there now, and the GOT entries in it that are not patched. */
static int look_again(struct session *s, struct err *e)
{
	AUTO_FREE struct got_entry *patched = NULL;
	AUTO_FREE struct control_trampoline *trampolines = NULL;
	size_t patched_count = 0, trampoline_count = 0;

	int rc = trampolines_in_force(s, &trampolines, &trampoline_count, e);
	rc = rc ?: inspect_session_again(s, e);
	rc = rc ?: session_entries_mark_gone(s, e);
	rc = rc ?: patched_entries(s, &patched, &patched_count, e);
	rc = rc ?: record_compile(s, e);
	if (rc == 0) {
		const struct got_plan_options options = {
			.groups = s->options.groups,
			.trampolines = trampolines,
			.trampoline_count = trampoline_count,
			.patched = patched,
			.patched_count = patched_count,
		};
		rc = plan_again(s, &options, e);
	}
	if (trampolines)
		keep_trampolines(s, &trampolines, trampoline_count);
	return rc;
}

static int note_allocator(struct session *s, struct err *e)
{
	s->view.plan.entry_count = 0;
	return record_unseen_once(
		s, DUMP_NOTE_NOT_PATCHED,
		"a module loaded since brought another allocator: its allocations are seen after a new attach", e);
}

static int patch_more(struct late_modules *l, struct err *e)
{
	struct session *s = l->s;
	const struct word_counts before = s->outcome.entries;

	l->missing = (uint32_t)s->view.plan.entry_count;
	int rc = attach_patch_more(s, e);
	if (rc < 0)
		return rc;
	l->missing = s->outcome.entries.refused - before.refused;
	if (s->options.verbose || l->said)
		session_say(s, "%u GOT entries more in modules loaded since",
		            s->outcome.entries.patched - before.patched);
	return l->missing ? err_set(e, EAGAIN, "they do not hold any more what they held") : 0;
}

static int came_or_went(struct late_modules *l, struct err *e)
{
	struct session *s = l->s;
	AUTO_FREE uint32_t *old_ids = calloc(s->view.modules.count + 1, sizeof *old_ids);
	const size_t old_count = s->view.modules.count;
	const uint32_t known = s->view.next_module_id;

	if (!old_ids)
		return err_set(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < old_count; i++)
		old_ids[i] = s->view.modules.list[i].id;
	l->missing = 0;
	int rc = look_again(s, e);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < old_count; i++)
		if (old_ids[i] && !modules_with_id(&s->view.modules, old_ids[i]))
			dump_writer_module_gone(&s->recording.dump, old_ids[i]);
	rc = record_modules(s, known, e);
	rc = rc ?: inspect_choose(s, e);
	if (rc == 0 && s->view.plan.entry_count && s->recording.asks_usable_size && !recording_usable_size(s))
		rc = note_allocator(s, e);
	return rc == 0 && s->view.plan.entry_count ? patch_more(l, e) : rc;
}

static void say_unseen(struct late_modules *l)
{
	char text[sizeof l->why.text + 100], entries[40] = "";
	struct err e;

	if (l->said)
		return;
	l->said = true;
	if (l->missing)
		snprintf(entries, sizeof entries, "%u GOT entries in ", l->missing);
	snprintf(text, sizeof text, "%smodules loaded since: %s", entries, l->why.text);
	if (record_unseen(l->s, DUMP_NOTE_NOT_PATCHED, text, &e) < 0)
		session_say(l->s, "memattach: %s", e.text);
}

/* A try has come to an end. */
static void account(struct late_modules *l, int rc, uint64_t now_ns)
{
	if (rc == 0) {
		l->tries = 0;
		l->said = false;
		return;
	}
	l->next_ns = now_ns + (TRY_AGAIN_NS << l->tries);
	if (++l->tries == SAID_AFTER)
		say_unseen(l);
	if (l->tries == TRIES_MAX)
		l->tries = 0;
}

int late_modules_begin(struct late_modules *l, struct session *s, struct err *e)
{
	*l = (struct late_modules){ .s = s };
	return session_entries_watch(s, &l->watched, e);
}

int late_modules_poll(struct late_modules *l, uint64_t now_ns)
{
	struct session *s = l->s;
	bool changed = false, consistent = false;
	struct err e;

	int rc = modules_changed(&s->view.modules, &s->memory, &changed, &consistent, &l->why);
	if (rc == 0 && consistent && (changed || (l->tries && now_ns >= l->next_ns))) {
		rc = came_or_went(l, &l->why);
		account(l, rc, now_ns);
		if (session_entries_watch(s, &l->watched, &e) < 0 && rc == 0) {
			l->why = e;
			rc = -e.code;
		}
	}
	if (rc < 0 && s->options.verbose)
		session_say(s, "memattach: modules loaded since: %s", l->why.text);
	return rc;
}

void late_modules_end(struct late_modules *l)
{
	if (l->tries)
		say_unseen(l);
}
