/* SPDX-License-Identifier: MIT */
/* What a plan does not see, and why: as data, and at one place in words. */
#pragma once

#include "base/err.h"
#include "catalogue/allocator_catalogue.h"
#include "dump/note_form.h"
#include "elf/modules.h"

enum plan_note_kind {
	NOTE_CONTAINS,      /* the module contains an allocator to which no GOT entry leads */
	NOTE_UNREADABLE,    /* its GOT entries are not patched */
	NOTE_OWN_CALLS,     /* its own calls of `hook` are not recorded, because its `because_of` makes them too */
	NOTE_MORE_REFUSALS, /* more GOT entries are not patched than are named */
	NOTE_MORE,          /* there are more notes */
};

struct plan_note {
	enum plan_note_kind kind;
	uint32_t module; /* index */
	const struct known_allocator *allocator;
	uint32_t hook, because_of; /* enum hook_id */
	char why[200];
};

const char *plan_note_text(const struct plan_note *note, const struct modules *modules, char text[NOTE_FORM_TEXT]);
