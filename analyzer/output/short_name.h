/* SPDX-License-Identifier: MIT */
/* Names of functions cut down to what fits a line: template arguments first, then parameters, then the middle. */
#pragma once

#include <stddef.h>

/* Longer template arguments become <…>; not those of a Rust path (<T as Trait>::f), nor operator< and its like. */
void short_name_templates(const char *name, char *out, size_t size);
/* For at most so many columns. out has size bytes; may be name. */
void short_name(const char *name, size_t columns, char *out, size_t size);
/* Cuts text that is valid UTF-8 in the middle, and marks that, so that it has at most so many columns, in place.
 * Returns its columns. */
size_t short_name_cut(char *text, size_t columns);
