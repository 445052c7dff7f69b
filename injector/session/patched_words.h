/* SPDX-License-Identifier: MIT */
/*
 * Words of the target that are patched, as they are counted and named for people. There are two kinds: GOT entries; and
 * words of CPython (GOT_PYTHON), which are patched, watched and given back as GOT entries are: those of its table of
 * allocators (python_hooks.h), and the one that leads to the end of code objects (python_code.h).
 */
#ifndef MEMATTACH_PATCHED_WORDS_H
#define MEMATTACH_PATCHED_WORDS_H

#include "session.h"

#define PATCHED_WORDS_TEXT 128u

/* The counts of that kind; flags: GOT_*. */
struct word_counts *patched_words_counts(struct session_outcome *o, uint32_t flags);
/* In the plan of the view. modules: how many they are in; NULL: not wanted. */
size_t patched_words_planned(const struct session *s, bool python, size_t *modules);
/* "9 words of CPython"; before: what stands in front of it. "" if there are none. */
void patched_words_of_python(char text[PATCHED_WORDS_TEXT], const char *before, size_t count);
/* "6 GOT entries in 2 modules, 9 words of CPython" */
void patched_words_attached(const struct session *s, char text[PATCHED_WORDS_TEXT]);
/* "6 of 6 GOT entries and 9 of 9 words of CPython restored" */
void patched_words_restored(const struct session *s, char text[PATCHED_WORDS_TEXT]);
/* Of one word, in front of its address. */
const char *patched_words_name(uint32_t flags);

#endif
