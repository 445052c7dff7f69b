/* SPDX-License-Identifier: MIT */
/* print_completion bash|zsh|fish memattach|memanalyze: run by the build. */
#include <string.h>

#include "completion.h"
#include "memanalyze_options.h"
#include "cli/memattach_options.h"

static const struct option_table *const tables[] = { &memattach_options, &memanalyze_options };

static const struct {
	const char *name;
	void (*print)(const struct option_table *table, FILE *out);
} shells[] = {
	{ "bash", bash_completion },
	{ "zsh", zsh_completion },
	{ "fish", fish_completion },
};

void completion_help(const struct option_row *row, const char *escaped, const char *quote, FILE *out)
{
	for (const char *c = row->help; *c && *c != ';'; c++) {
		if (*c == '\'') {
			fputs(quote, out);
			continue;
		}
		if (strchr(escaped, *c))
			fputc('\\', out);
		fputc(*c, out);
	}
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 3 && i < sizeof shells / sizeof shells[0]; i++) {
		for (size_t j = 0; j < sizeof tables / sizeof tables[0]; j++) {
			if (strcmp(argv[1], shells[i].name) || strcmp(argv[2], tables[j]->program))
				continue;
			shells[i].print(tables[j], stdout);
			return fflush(stdout) ? 1 : 0;
		}
	}
	fputs("usage: print_completion bash|zsh|fish memattach|memanalyze\n", stderr);
	return 64;
}
