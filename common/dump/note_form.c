/* SPDX-License-Identifier: MIT */
#include "dump/note_form.h"

#include <stdio.h>
#include <string.h>

#include "base/printable.h"

#define NAME_BYTES 100u /* of a name that is written */

/* %m module, %f function, %w why. The first form is taken that fits: a function has no blank in its name. */
static const struct {
	const char *one, *several;
} forms[NOTE_FORM_COUNT] = {
	[NOTE_FORM_ENTRIES] = { "%m: its GOT entries are not patched: %w", "GOT entries of %m are not patched: %w" },
	[NOTE_FORM_ENTRY] = { "%m: %f not patched: %w", "calls of %f from %m: %w" },
	[NOTE_FORM_OWN_CALLS] = { "%m: its own calls of %f are not recorded, because its %w makes them too",
	                          "own calls of %f by %m are not recorded, because their %w makes them too" },
	[NOTE_FORM_NOT_HOOKED] = { "%f in %m is not hooked (%w): its calls are not seen",
	                           "%f in %m are not hooked (%w): their calls are not seen" },
	[NOTE_FORM_NO_ROWS] = { "%m has no unwind table%w: stacks through it may end early",
	                        "%m have no unwind table%w: stacks through them may end early" },
	[NOTE_FORM_UNREAD] = { "%m cannot be read: %w", "%m cannot be read: %w" },
};

struct values {
	const char *module, *function, *why;
};

struct line {
	char *text;
	size_t size, used;
};

/* ---- writing ---- */

static void add(struct line *l, const char *text)
{
	int n = snprintf(l->text + l->used, l->size - l->used, "%s", text);

	l->used = n < 0 || (size_t)n >= l->size - l->used ? l->size - 1 : l->used + (size_t)n;
}

static void fill(struct line *l, const char *pattern, const struct values *v)
{
	for (const char *s = pattern; *s; s++) {
		char one[2] = { *s };
		add(l, *s != '%' ? one : *++s == 'm' ? v->module : *s == 'f' ? v->function : v->why);
	}
	printable_copy(l->text, l->text, l->size);
}

void note_form_write(char text[NOTE_FORM_TEXT], enum note_form form, const char *module, const char *function,
                     const char *why)
{
	char name[NAME_BYTES + 1];
	const struct values v = { name, function ? function : "", why };

	snprintf(name, sizeof name, "%s", module);
	fill(&(struct line){ text, NOTE_FORM_TEXT, 0 }, forms[form].one, &v);
}

/* "a, b, c and 4 more modules"; true: all of them. */
static bool list_names(char text[NOTE_FORM_ALL_TEXT], const struct note_names *names, const char *noun)
{
	const size_t said = names->count <= NOTE_FORM_NAMED + 1 ? names->count : NOTE_FORM_NAMED;
	struct line l = { text, NOTE_FORM_ALL_TEXT, 0 };
	char more[60];

	text[0] = '\0';
	for (size_t i = 0; i < said; i++) {
		add(&l, !i ? "" : i + 1 == names->count ? " and " : ", ");
		add(&l, names->list[i]);
	}
	if (said < names->count) {
		snprintf(more, sizeof more, " and %zu more %s", names->count - said, noun);
		add(&l, more);
	}
	return said == names->count;
}

bool note_form_write_all(char text[NOTE_FORM_ALL_TEXT], enum note_form form, const struct note_names *modules,
                         const struct note_names *functions, const char *why)
{
	char module[NOTE_FORM_ALL_TEXT], function[NOTE_FORM_ALL_TEXT];
	const struct values v = { module, function, why };
	bool each = list_names(module, modules, "modules");

	each &= list_names(function, functions, "functions");
	fill(&(struct line){ text, NOTE_FORM_ALL_TEXT, 0 }, forms[form].several, &v);
	return each && (modules->count == 1 || functions->count <= 1);
}

/* ---- reading ---- */

static char *place_of(struct note_parts *p, char placeholder)
{
	return placeholder == 'm' ? p->module : placeholder == 'f' ? p->function : p->why;
}

/* Text that can stand for a placeholder begins with so many bytes. */
static bool fits(char placeholder, const char *text, size_t bytes)
{
	return placeholder == 'w' || (bytes && (placeholder == 'm' || !memchr(text, ' ', bytes)));
}

/* A placeholder stands for as little as it can. */
static bool read_pattern(const char *pattern, const char *text, struct note_parts *p)
{
	for (; *pattern && *pattern != '%'; pattern++, text++)
		if (*pattern != *text)
			return false;
	if (!*pattern)
		return !*text;
	for (size_t n = 0; n <= strlen(text) && n < NOTE_FORM_TEXT; n++) {
		if (!fits(pattern[1], text, n) || !read_pattern(pattern + 2, text + n, p))
			continue;
		snprintf(place_of(p, pattern[1]), NOTE_FORM_TEXT, "%.*s", (int)n, text);
		return true;
	}
	return false;
}

bool note_form_read(const char *text, struct note_parts *parts)
{
	*parts = (struct note_parts){ 0 };
	for (unsigned i = 0; i < NOTE_FORM_COUNT; i++) {
		if (read_pattern(forms[i].one, text, parts)) {
			parts->form = (enum note_form)i;
			return true;
		}
	}
	return false;
}
