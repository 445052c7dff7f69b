/* SPDX-License-Identifier: MIT */
/* The notes of dumps, in the text report. */
#include "dump/note_folding.h"
#include "text/text.h"

#define NOTES_LISTED 64

/* Those that are about stacks stand at the end. Those that are said alike of several are one, but for --verbose. */
static bool fold_notes(const struct report *r, bool stacks, struct note_folding *f)
{
	for (size_t i = 0; i < r->note_count; i++)
		if ((r->notes[i].kind == DUMP_NOTE_NO_UNWIND) == stacks &&
		    note_folding_add(f, r->notes[i].kind, r->notes[i].text))
			return false;
	return true;
}

static void put_note(const struct text *t, uint32_t kind, const char *text)
{
	const bool told = kind == DUMP_NOTE_OTHER || kind == DUMP_NOTE_FULL;

	text_warning(t, kind == DUMP_NOTE_NO_UNWIND ? "stacks" : told ? "note" : "not seen", text);
}

/* How many there was no room for. */
static size_t put_notes(const struct text *t, bool stacks)
{
	const struct report *r = t->report;
	struct note_folding f = { 0 };
	char text[NOTE_FORM_ALL_TEXT];
	size_t listed = 0, more = 0;

	const bool folded = !r->options.verbose && fold_notes(r, stacks, &f);
	for (size_t i = 0; i < (folded ? f.count : r->note_count); i++) {
		const uint32_t kind = folded ? f.list[i].kind : r->notes[i].kind;
		if ((kind == DUMP_NOTE_NO_UNWIND) != stacks)
			continue;
		if (listed++ >= NOTES_LISTED) {
			more++;
			continue;
		}
		if (folded)
			note_folding_text(&f.list[i], " (--verbose names each)", text);
		put_note(t, kind, folded ? text : r->notes[i].text);
	}
	note_folding_done(&f);
	return more;
}

static void put_more_notes(const struct text *t, uint64_t more)
{
	char number[40];

	if (!more)
		return;
	text_label(t, "");
	fprintf(t->out, "... and %s more %s (--json has %u of them at most)\n", text_grouped((double)more, number),
	        text_plural((double)more, "note", "notes"), REPORT_NOTES_MAX);
}

void text_notes(const struct text *t)
{
	put_more_notes(t, put_notes(t, false) + t->report->notes_left_out);
}

void text_stack_notes(const struct text *t)
{
	put_more_notes(t, put_notes(t, true));
}
