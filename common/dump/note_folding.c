/* SPDX-License-Identifier: MIT */
#include "dump/note_folding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

static struct folded_note *find(const struct note_folding *f, uint32_t kind, const struct note_parts *parts)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->list[i].has_form && f->list[i].kind == kind && f->list[i].form == parts->form &&
		    !strcmp(f->list[i].why, parts->why))
			return &f->list[i];
	return NULL;
}

static void done(struct folded_note *note)
{
	free(note->text);
	free(note->why);
	string_table_done(&note->modules);
	string_table_done(&note->functions);
}

/* The forms of the operators of C++ count as one each. */
static const char *people_say(const char *function)
{
	static const struct {
		const char *begins, *said;
	} operators[] = { { "_Znw", "operator new" },
		          { "_Zna", "operator new[]" },
		          { "_Zdl", "operator delete" },
		          { "_Zda", "operator delete[]" } };

	for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++)
		if (!strncmp(function, operators[i].begins, strlen(operators[i].begins)))
			return operators[i].said;
	return function;
}

static int add_names(struct folded_note *note, const struct note_parts *parts)
{
	uint32_t number;

	int rc = string_table_add(&note->modules, parts->module, &number);
	if (rc == 0 && parts->function[0])
		rc = string_table_add(&note->functions, people_say(parts->function), &number);
	return rc;
}

int note_folding_add(struct note_folding *f, uint32_t kind, const char *text)
{
	struct note_parts parts;
	const bool has_form = note_form_read(text, &parts);
	struct folded_note *known = has_form ? find(f, kind, &parts) : NULL;

	if (known)
		return add_names(known, &parts);
	if (!grow_list(f->list, f->count))
		return -ENOMEM;
	struct folded_note note = {
		.kind = kind, .text = strdup(text), .has_form = has_form, .form = parts.form, .why = strdup(parts.why)
	};
	if (!note.text || !note.why || add_names(&note, &parts)) {
		done(&note);
		return -ENOMEM;
	}
	f->list[f->count++] = note;
	return 0;
}

void note_folding_text(const struct folded_note *note, const char *hint, char text[NOTE_FORM_ALL_TEXT])
{
	const struct note_names modules = { note->modules.list, note->modules.count };
	const struct note_names functions = { note->functions.list, note->functions.count };
	size_t length;

	if (modules.count <= 1 && functions.count <= 1)
		snprintf(text, NOTE_FORM_ALL_TEXT, "%s", note->text);
	else if (!note_form_write_all(text, note->form, &modules, &functions, note->why)) {
		length = strlen(text);
		snprintf(text + length, NOTE_FORM_ALL_TEXT - length, "%s", hint);
	}
}

void note_folding_done(struct note_folding *f)
{
	for (size_t i = 0; i < f->count; i++)
		done(&f->list[i]);
	free(f->list);
	*f = (struct note_folding){ 0 };
}
