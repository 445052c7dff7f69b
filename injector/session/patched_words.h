/* SPDX-License-Identifier: MIT */
/*
 * Words of the target that are patched, as they are named for people. There are two kinds: GOT entries; and words of
 * CPython, which lead to functions that are hooked at their entries (python_functions.h).
 */
#pragma once

#include "session/session.h"

#define PATCHED_WORDS_TEXT 320u

/* "8 words of CPython"; before: what stands in front of it. "" if there are none. */
void patched_words_of_python(char text[PATCHED_WORDS_TEXT], const char *before, size_t count);
/* "9 functions of glibc 2.36, 6 GOT entries in 2 modules, 8 words of CPython"; what there is none of is left out. */
void patched_words_attached(const struct session *s, char text[PATCHED_WORDS_TEXT]);
/* "9 of 9 functions and 6 of 6 GOT entries and 9 of 8 words of CPython restored" */
void patched_words_restored(const struct session *s, char text[PATCHED_WORDS_TEXT]);
