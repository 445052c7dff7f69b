/* SPDX-License-Identifier: MIT */
#include "completion.h"

/* -x: a value must follow, and no file is proposed; -r: files are. */
static void print_value(enum option_value value, const char *words, FILE *out)
{
	if (words) {
		fprintf(out, " -x -a '%s'", words);
		return;
	}
	switch (value) {
	case OPTION_VALUE_FILE: fputs(" -r -F", out); break;
	case OPTION_VALUE_DIRECTORY: fputs(" -x -a '(__fish_complete_directories)'", out); break;
	case OPTION_VALUE_PID: fputs(" -x -a '(__fish_complete_pids)'", out); break;
	case OPTION_VALUE_DUMP: fputs(" -k -x -a '(__fish_complete_suffix .dump)'", out); break;
	default: fputs(" -x", out); break;
	}
}

static void print_row(const struct option_table *table, const struct option_row *row, FILE *out)
{
	fprintf(out, "complete -c %s", table->program);
	if (row->code < OPTION_CODE_LONG)
		fprintf(out, " -s %c", row->code);
	fprintf(out, " -l %s", row->name);
	if (option_row_argument(row) == required_argument)
		print_value(row->value, option_row_words(row), out);
	fputs(" -d '", out);
	completion_help(row, "\\", "\\'", out);
	fputs("'\n", out);
}

void fish_completion(const struct option_table *table, FILE *out)
{
	fprintf(out, "# fish completion for %1$s; made by the build from the table of its options.\n\ncomplete -c %1$s",
	        table->program);
	if (table->command) {
		fprintf(out,
		        " -n 'contains -- -- (commandline -opc)' -a '(__fish_complete_command)'\n"
		        "complete -c %s -n 'not contains -- -- (commandline -opc)'",
		        table->program);
	}
	if (table->operand == OPTION_VALUE_TEXT)
		fputs(" -f", out);
	else
		print_value(table->operand, NULL, out);
	fputc('\n', out);
	for (const struct option_row *row = table->rows; !option_row_is_end(row); row++) {
		if (!row->group)
			print_row(table, row, out);
	}
}
