/* SPDX-License-Identifier: MIT */
#include "base/option_table.h"

#include <stdbool.h>
#include <string.h>

enum { COLUMNS = 80, HELP_COLUMN = 26 };

int option_row_argument(const struct option_row *row)
{
	if (!row->argument)
		return no_argument;
	return row->argument[0] == '[' ? optional_argument : required_argument;
}

static char *add_letter(char *at, const struct option_row *row)
{
	*at++ = (char)row->code;
	/* ':' for each of required_argument, twice for optional_argument. */
	for (int i = 0; i < option_row_argument(row); i++)
		*at++ = ':';
	return at;
}

void option_table_arrays(const struct option_table *table, struct option_arrays *arrays)
{
	struct option *option = arrays->long_options;
	char *letter = arrays->short_options;

	for (const struct option_row *row = table->rows; !option_row_is_end(row); row++) {
		if (row->group)
			continue;
		if (option == arrays->long_options + OPTION_ROWS_MAX)
			break;
		*option++ = (struct option){ row->name, option_row_argument(row), NULL, row->code };
		if (row->code < OPTION_CODE_LONG)
			letter = add_letter(letter, row);
	}
	*option = (struct option){ 0 };
	*letter = 0;
}

const char *option_row_words(const struct option_row *row)
{
	switch (row->value) {
	case OPTION_VALUE_WORDS: return row->words;
	case OPTION_VALUE_SIZE: return "64k 512k 1M 16M 1G";
	case OPTION_VALUE_TIME: return "10s 1m 10m 1h";
	default: return NULL;
	}
}

/* "  -r, --rate=SIZE"; returns the columns. */
static int print_option(const struct option_row *row, FILE *out)
{
	int columns = row->code < OPTION_CODE_LONG ? fprintf(out, "  -%c, ", row->code) : fprintf(out, "      ");

	columns += fprintf(out, "--%s", row->name);
	switch (option_row_argument(row)) {
	case required_argument: columns += fprintf(out, "=%s", row->argument); break;
	case optional_argument: columns += fprintf(out, "[=%s", row->argument + 1); break;
	default: break;
	}
	return columns;
}

/* Words of text from the column HELP_COLUMN on, in as many lines as it takes; the pen is at `column`. */
static void print_wrapped(const char *text, int column, FILE *out)
{
	bool first = true;

	if (column + 2 > HELP_COLUMN) {
		fputc('\n', out);
		column = 0;
	}
	column += fprintf(out, "%*s", HELP_COLUMN - column, "");
	while (*text) {
		int length = (int)strcspn(text, " ");
		if (!first && column + 1 + length > COLUMNS) {
			fprintf(out, "\n%*s", HELP_COLUMN, "");
			column = HELP_COLUMN;
			first = true;
		}
		column += fprintf(out, "%s%.*s", first ? "" : " ", length, text);
		first = false;
		text += length;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

void option_table_help(const struct option_table *table, FILE *out)
{
	fputs(table->before, out);
	for (const struct option_row *row = table->rows; !option_row_is_end(row); row++) {
		if (row->group)
			fprintf(out, "\n%s:\n", row->group);
		else
			print_wrapped(row->help, print_option(row, out), out);
	}
	fprintf(out, "\n%s", table->after);
}
