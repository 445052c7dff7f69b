/* SPDX-License-Identifier: MIT */
#include "session/patched_words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static size_t modules_planned(const struct got_plan *plan)
{
	uint32_t last = UINT32_MAX;
	size_t found = 0;

	for (size_t i = 0; i < plan->entry_count; i++) {
		found += plan->entries[i].module != last; /* sorted by module */
		last = plan->entries[i].module;
	}
	return found;
}

void patched_words_of_python(char text[PATCHED_WORDS_TEXT], const char *before, size_t count)
{
	text[0] = '\0';
	if (count)
		snprintf(text, PATCHED_WORDS_TEXT, "%s%zu word%s of CPython", before, count, count == 1 ? "" : "s");
}

/* Appends to a list in a sentence; what there is none of is not named. */
static void add(char text[PATCHED_WORDS_TEXT], const char *between, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void add(char text[PATCHED_WORDS_TEXT], const char *between, const char *format, ...)
{
	size_t length = strlen(text);
	va_list ap;

	if (length)
		length += (size_t)snprintf(text + length, PATCHED_WORDS_TEXT - length, "%s", between);
	va_start(ap, format);
	if (length < PATCHED_WORDS_TEXT)
		vsnprintf(text + length, PATCHED_WORDS_TEXT - length, format, ap);
	va_end(ap);
}

void patched_words_attached(const struct session *s, char text[PATCHED_WORDS_TEXT])
{
	const struct session_outcome *o = &s->outcome;
	char python[PATCHED_WORDS_TEXT];

	text[0] = '\0';
	if (o->functions_hooked)
		add(text, "", "%u functions of %s", o->functions_hooked, s->hooks.text);
	if (o->entries.patched || !o->functions_hooked)
		add(text, ", ", "%u GOT entries in %zu modules", o->entries.patched, modules_planned(&s->view.plan));
	patched_words_of_python(python, "", o->python.patched);
	if (python[0])
		add(text, ", ", "%.40s", python);
}

void patched_words_restored(const struct session *s, char text[PATCHED_WORDS_TEXT])
{
	const struct session_outcome *o = &s->outcome;
	const struct word_counts *got = &o->entries, *python = &o->python;

	text[0] = '\0';
	if (o->functions_hooked)
		add(text, "", "%u of %u functions", o->functions_restored, o->functions_hooked);
	if (got->patched || !o->functions_hooked)
		add(text, " and ", "%u of %u GOT entries", got->restored, got->patched);
	if (python->patched)
		add(text, " and ", "%u of %u words of CPython", python->restored, python->patched);
	add(text, " ", "restored");
}
