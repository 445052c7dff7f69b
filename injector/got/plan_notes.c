/* SPDX-License-Identifier: MIT */
#include "got/plan_notes.h"

#include <stdio.h>

#include "base/printable.h"
#include "got/listed_hook.h"

const char *plan_note_text(const struct plan_note *note, const struct modules *modules, char text[NOTE_FORM_TEXT])
{
	const char *name = note->module < modules->count ? elf_module_name(&modules->list[note->module]) : "a module";

	switch (note->kind) {
	case NOTE_CONTAINS:
		snprintf(text, NOTE_FORM_TEXT, "%.100s contains %s: what it allocates by that is not seen", name,
		         note->allocator->name);
		break;
	case NOTE_UNREADABLE: note_form_write(text, NOTE_FORM_ENTRIES, name, NULL, note->why); break;
	case NOTE_OWN_CALLS:
		note_form_write(text, NOTE_FORM_OWN_CALLS, name, listed_hook_symbol(note->hook),
		                listed_hook_symbol(note->because_of));
		break;
	case NOTE_MORE_REFUSALS:
		snprintf(text, NOTE_FORM_TEXT, "%.100s: more GOT entries are not patched than are named here", name);
		break;
	case NOTE_MORE: snprintf(text, NOTE_FORM_TEXT, "there is more that is not seen than is named here"); break;
	}
	printable_copy(text, text, NOTE_FORM_TEXT);
	return text;
}
