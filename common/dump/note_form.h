/* SPDX-License-Identifier: MIT */
/*
 * The forms of notes (DUMP_NOTE_*) that are said of one function or module, and often of many alike. In a dump each is
 * a sentence of its own, written here from its parts. People read one sentence for a reason: so the parts are found
 * again here, in dumps of other versions, too; a sentence that has none of the forms is left as it is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum note_form {
	NOTE_FORM_ENTRIES,    /* the GOT entries of a module are not patched */
	NOTE_FORM_ENTRY,      /* its GOT entry of a function is not */
	NOTE_FORM_OWN_CALLS,  /* its own calls of a function are not recorded; why: the function that makes them too */
	NOTE_FORM_NOT_HOOKED, /* a function in it is not hooked at its entry */
	NOTE_FORM_NO_ROWS,    /* it has no unwind table; why: "" or ": …" */
	NOTE_FORM_UNREAD,     /* it cannot be read */
	NOTE_FORM_COUNT,
};

#define NOTE_FORM_TEXT 400u
#define NOTE_FORM_ALL_TEXT 4096u
#define NOTE_FORM_NAMED 3u /* names of a list that are said; or one more, where that is the last */

struct note_parts {
	enum note_form form;
	char module[NOTE_FORM_TEXT], function[NOTE_FORM_TEXT], why[NOTE_FORM_TEXT]; /* function "": the form has none */
};

/* Printable (printable.h), of at most NOTE_FORM_TEXT bytes; function: NULL where the form has none. */
void note_form_write(char text[NOTE_FORM_TEXT], enum note_form form, const char *module, const char *function,
                     const char *why);
/* False: it has none of the forms. */
bool note_form_read(const char *text, struct note_parts *parts);

/* Names, each once. */
struct note_names {
	char *const *list;
	size_t count;
};
/* One sentence of the notes of a form that have one reason. False: it does not say each of them. */
bool note_form_write_all(char text[NOTE_FORM_ALL_TEXT], enum note_form form, const struct note_names *modules,
                         const struct note_names *functions, const char *why);
