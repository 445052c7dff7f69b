/* SPDX-License-Identifier: MIT */
/* Completions of the shells, from the table of a program's options. Each function prints the whole file. */
#ifndef MEMATTACH_COMPLETION_H
#define MEMATTACH_COMPLETION_H

#include <stdio.h>

#include "base/option_table.h"

void bash_completion(const struct option_table *table, FILE *out);
void zsh_completion(const struct option_table *table, FILE *out);
void fish_completion(const struct option_table *table, FILE *out);

/* Prints the help of a row without what follows a semicolon; before each character of `escaped` comes a backslash, and
 * `quote` stands for an apostrophe, as all is between apostrophes. */
void completion_help(const struct option_row *row, const char *escaped, const char *quote, FILE *out);

#endif
