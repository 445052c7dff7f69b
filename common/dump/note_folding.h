/* SPDX-License-Identifier: MIT */
/*
 * Notes of a dump for people: those of one form (note_form.h), kind and reason are one sentence, at the place of the
 * first of them; all others are as they are.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/string_table.h"
#include "dump/note_form.h"

struct folded_note {
	uint32_t kind; /* DUMP_NOTE_* */
	char *text;    /* of the first */
	bool has_form;
	enum note_form form;
	char *why;
	struct string_table modules, functions;
};

struct note_folding {
	struct folded_note *list;
	size_t count;
};

/* -ENOMEM. note_folding_done afterwards. */
int note_folding_add(struct note_folding *f, uint32_t kind, const char *text) WARN_UNUSED;
/* The sentence; hint: what follows one that does not say each of its notes. */
void note_folding_text(const struct folded_note *note, const char *hint, char text[NOTE_FORM_ALL_TEXT]);
void note_folding_done(struct note_folding *f);
