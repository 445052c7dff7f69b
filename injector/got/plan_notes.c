/* SPDX-License-Identifier: MIT */
#include "got/plan_notes.h"

#include <stdio.h>

#include "base/printable.h"
#include "got/listed_hook.h"

const char *plan_note_text(const struct plan_note *note, const struct modules *modules, char text[PLAN_NOTE_TEXT])
{
	const char *name = note->module < modules->count ? elf_module_name(&modules->list[note->module]) : "a module";

	switch (note->kind) {
	case NOTE_CONTAINS:
		snprintf(text, PLAN_NOTE_TEXT, "%.100s contains %s: what it allocates by that is not seen", name,
		         note->allocator->name);
		break;
	case NOTE_UNREADABLE:
		snprintf(text, PLAN_NOTE_TEXT, "%.100s: its GOT entries are not patched: %s", name, note->why);
		break;
	case NOTE_OWN_CALLS:
		snprintf(text, PLAN_NOTE_TEXT,
		         "%.100s: its own calls of %s are not recorded, because its %s makes them too", name,
		         listed_hook_symbol(note->hook), listed_hook_symbol(note->because_of));
		break;
	case NOTE_MORE_REFUSALS:
		snprintf(text, PLAN_NOTE_TEXT, "%.100s: more GOT entries are not patched than are named here", name);
		break;
	case NOTE_MORE: snprintf(text, PLAN_NOTE_TEXT, "there is more that is not seen than is named here"); break;
	}
	printable_copy(text, text, PLAN_NOTE_TEXT);
	return text;
}
