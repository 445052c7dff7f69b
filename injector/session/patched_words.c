/* SPDX-License-Identifier: MIT */
#include "patched_words.h"

struct word_counts *patched_words_counts(struct session_outcome *o, uint32_t flags)
{
	return flags & GOT_PYTHON ? &o->python : &o->entries;
}

size_t patched_words_planned(const struct session *s, bool python, size_t *modules)
{
	const struct got_plan *plan = &s->view.plan;
	uint32_t last = UINT32_MAX;
	size_t count = 0, found = 0;

	for (size_t i = 0; i < plan->entry_count; i++) {
		const struct entry_plan *word = &plan->entries[i];
		if (!(word->flags & GOT_PYTHON) != !python)
			continue;
		found += word->module != last; /* sorted by module */
		last = word->module;
		count++;
	}
	if (modules)
		*modules = found;
	return count;
}

void patched_words_of_python(char text[PATCHED_WORDS_TEXT], const char *before, size_t count)
{
	text[0] = '\0';
	if (count)
		snprintf(text, PATCHED_WORDS_TEXT, "%s%zu word%s of CPython", before, count, count == 1 ? "" : "s");
}

void patched_words_attached(const struct session *s, char text[PATCHED_WORDS_TEXT])
{
	char python[PATCHED_WORDS_TEXT];
	size_t modules;

	(void)patched_words_planned(s, false, &modules);
	patched_words_of_python(python, ", ", s->outcome.python.patched);
	snprintf(text, PATCHED_WORDS_TEXT, "%u GOT entries in %zu modules%.40s", s->outcome.entries.patched, modules,
	         python);
}

void patched_words_restored(const struct session *s, char text[PATCHED_WORDS_TEXT])
{
	const struct word_counts *got = &s->outcome.entries, *python = &s->outcome.python;

	if (python->patched)
		snprintf(text, PATCHED_WORDS_TEXT, "%u of %u GOT entries and %u of %u words of CPython restored",
		         got->restored, got->patched, python->restored, python->patched);
	else
		snprintf(text, PATCHED_WORDS_TEXT, "%u of %u GOT entries restored", got->restored, got->patched);
}

const char *patched_words_name(uint32_t flags)
{
	return flags & GOT_PYTHON ? "word of CPython" : "GOT entry";
}
