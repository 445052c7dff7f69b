/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "completion.h"

/* ":message:action" of _arguments. */
static void print_action(const char *message, enum option_value value, const char *words, FILE *out)
{
	fprintf(out, ":%s:", message);
	if (words) {
		fprintf(out, "(%s)", words);
		return;
	}
	switch (value) {
	case OPTION_VALUE_FILE: fputs("_files", out); break;
	case OPTION_VALUE_DIRECTORY: fputs("_directories", out); break;
	case OPTION_VALUE_PID: fputs("_pids", out); break;
	case OPTION_VALUE_DUMP: fputs("_files -g \"*.dump\"", out); break;
	default: break;
	}
}

/* '*-r+[help]:SIZE:': "+" says that a value may be the rest of the word or the next one, "=" that it may follow one;
 * with "-" after it it must be the rest. "*": may be repeated. */
static void print_spec(const struct option_row *row, const char *name, const char *sign, FILE *out)
{
	fprintf(out, " \\\n    '*%s%s[", name, sign);
	completion_help(row, "[]\\", "'\\''", out);
	fputc(']', out);
	if (option_row_argument(row) == optional_argument)
		fprintf(out, "::%.*s:", (int)strlen(row->argument) - 2, row->argument + 1);
	else if (row->argument)
		print_action(row->argument, row->value, option_row_words(row), out);
	fputc('\'', out);
}

static void print_row(const struct option_row *row, FILE *out)
{
	static const struct {
		const char *letter, *name;
	} signs[] = {
		[no_argument] = { "", "" },
		[required_argument] = { "+", "=" },
		[optional_argument] = { "-", "=-" },
	};
	int kind = option_row_argument(row);
	char name[80];

	if (row->code < OPTION_CODE_LONG) {
		snprintf(name, sizeof name, "-%c", row->code);
		print_spec(row, name, signs[kind].letter, out);
	}
	snprintf(name, sizeof name, "--%s", row->name);
	print_spec(row, name, signs[kind].name, out);
}

void zsh_completion(const struct option_table *table, FILE *out)
{
	fprintf(out,
	        "#compdef %s\n"
	        "# Made by the build from the table of the program's options.\n\n"
	        "_arguments -s -S",
	        table->program);
	for (const struct option_row *row = table->rows; !option_row_is_end(row); row++) {
		if (!row->group)
			print_row(row, out);
	}
	if (table->command) {
		/* With ":::" the words are those that are no options: the first one begins a command. */
		fputs(" \\\n    '*:::PID or command:{ if ((CURRENT == 1)); then _alternative \"processes:PID:_pids\" "
		      "\"commands:command:_command_names -e\"; else _normal; fi }'",
		      out);
	} else if (table->operand != OPTION_VALUE_TEXT) {
		fputs(" \\\n    '*", out);
		print_action("file", table->operand, NULL, out);
		fputc('\'', out);
	}
	fputc('\n', out);
}
