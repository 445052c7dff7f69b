/* SPDX-License-Identifier: MIT */
/*
 * The options of a program as one table. getopt_long()'s arrays, --help and the completions of the shells come from it,
 * so that an option is declared in one place; only what it does is written elsewhere, in a switch over its code.
 *
 * The order of the rows is that of --help and of the man page; a row with nothing but `group` begins a group.
 */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

/* What an argument is, for the completions. */
enum option_value {
	OPTION_VALUE_TEXT, /* anything; nothing can be proposed */
	OPTION_VALUE_FILE,
	OPTION_VALUE_DIRECTORY,
	OPTION_VALUE_PID,
	OPTION_VALUE_SIZE,
	OPTION_VALUE_TIME,
	OPTION_VALUE_WORDS, /* one of `words` */
	OPTION_VALUE_DUMP,  /* a file *.dump */
};

struct option_row {
	const char *group; /* a heading, and nothing else is in the row */

	int code; /* what getopt_long() returns: its letter, or from OPTION_CODE_LONG on if it has none */
	const char *name;
	const char *argument; /* "SIZE"; "[N]" may be left out; NULL: takes none */
	enum option_value value;
	const char *words; /* of OPTION_VALUE_WORDS, with blanks between them */
	unsigned uses;     /* bits of the program's: what it does instead of its main purpose that heeds the option */
	const char *help;  /* in lower case, without a full stop; printed with its lines broken */
};

#define OPTION_CODE_LONG 256

struct option_table {
	const char *program;
	const char *before;            /* of --help, as it is to be printed: the usage, what the program does */
	const struct option_row *rows; /* the last one is empty */
	const char *after;             /* units, examples, exit status */
	enum option_value operand; /* what the words are that are no options; OPTION_VALUE_TEXT: none, or anything */
	bool command;              /* what follows "--" is a command with its arguments */
};

/* Room for getopt_long(). */
#define OPTION_ROWS_MAX 80

struct option_arrays {
	struct option long_options[OPTION_ROWS_MAX + 1];
	char short_options[3 * OPTION_ROWS_MAX + 1];
};

/* The table must have at most OPTION_ROWS_MAX rows; what is beyond is left out. */
void option_table_arrays(const struct option_table *table, struct option_arrays *arrays);

/* All of --help, in 80 columns. */
void option_table_help(const struct option_table *table, FILE *out);

/* no_argument, required_argument or optional_argument of getopt_long(). */
int option_row_argument(const struct option_row *row);

/* What can be proposed for the argument: its words, or usual sizes or times, with blanks between them; NULL: nothing.
 */
const char *option_row_words(const struct option_row *row);

/* Whether a row is the end of a table. */
static inline int option_row_is_end(const struct option_row *row)
{
	return !row->group && !row->name;
}
