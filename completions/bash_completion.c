/* SPDX-License-Identifier: MIT */
#include "completion.h"

/* The command that proposes what an argument can be. */
static void print_proposal(const char *program, enum option_value value, const char *words, FILE *out)
{
	if (words) {
		fprintf(out, "_%s_words '%s'", program, words);
		return;
	}
	switch (value) {
	case OPTION_VALUE_FILE: fprintf(out, "_%s_files -f", program); break;
	case OPTION_VALUE_DIRECTORY: fprintf(out, "_%s_files -d", program); break;
	case OPTION_VALUE_PID: fprintf(out, "_%s_pids", program); break;
	case OPTION_VALUE_DUMP: fprintf(out, "_%s_dumps", program); break;
	default: fputs(":", out); break;
	}
}

/* How the values of $cur are found. A process can be attached to only if its /proc/PID/exe can be followed; those of
 * the kernel have none. */
static void print_helpers(const char *program, FILE *out)
{
	fprintf(out,
	        "_%1$s_words() {\n"
	        "    mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\")\n"
	        "}\n\n"
	        "_%1$s_files() {\n"
	        "    compopt -o filenames 2>/dev/null\n"
	        "    mapfile -t COMPREPLY < <(compgen \"$@\" -- \"$cur\")\n"
	        "}\n\n",
	        program);
	fprintf(out,
	        "_%1$s_dumps() {\n"
	        "    _%1$s_files -f -X '!*.dump' -o plusdirs\n"
	        "    [[ ${#COMPREPLY[@]} -gt 0 ]] || _%1$s_files -f\n"
	        "}\n\n",
	        program);
	fprintf(out,
	        "_%1$s_pids() {\n"
	        "    local process pids=()\n"
	        "    for process in /proc/[0-9]*; do\n"
	        "        [[ -e $process/exe ]] && pids+=(\"${process#/proc/}\")\n"
	        "    done\n"
	        "    _%1$s_words \"${pids[*]}\"\n"
	        "}\n\n",
	        program);
}

/* "-r|--rate" of the options whose value is the next word; of those with a value that may be left out, the long form,
 * as only "--name=" begins one. */
static void print_values(const struct option_table *table, FILE *out)
{
	for (const struct option_row *row = table->rows; !option_row_is_end(row); row++) {
		if (row->group || !row->argument)
			continue;
		fputs("    ", out);
		if (option_row_argument(row) == optional_argument)
			fprintf(out, "--%s=) ", row->name);
		else if (row->code < OPTION_CODE_LONG)
			fprintf(out, "-%c | --%s | --%s=) ", row->code, row->name, row->name);
		else
			fprintf(out, "--%s | --%s=) ", row->name, row->name);
		print_proposal(table->program, row->value, option_row_words(row), out);
		fputs("; return ;;\n", out);
	}
}

/* "--rate= --json -r -j": with the sign where a value must follow. */
static void print_names(const struct option_table *table, FILE *out)
{
	const char *separator = "";

	for (const struct option_row *row = table->rows; !option_row_is_end(row); row++) {
		if (row->group)
			continue;
		fprintf(out, "%s--%s%s", separator, row->name,
		        option_row_argument(row) == required_argument ? "=" : "");
		if (row->code < OPTION_CODE_LONG)
			fprintf(out, " -%c", row->code);
		separator = " ";
	}
}

/* The command, then files for it. */
static void print_command(const char *program, FILE *out)
{
	fprintf(out,
	        "    if [[ ! $option ]]; then\n"
	        "        if ((i == COMP_CWORD - 1)); then\n"
	        "            _%1$s_files -c\n"
	        "        else\n"
	        "            _%1$s_files -f\n"
	        "        fi\n"
	        "        return\n"
	        "    fi\n",
	        program);
}

void bash_completion(const struct option_table *table, FILE *out)
{
	fprintf(out, "# bash completion for %s; made by the build from the table of its options.\n\n", table->program);
	print_helpers(table->program, out);
	fprintf(out,
	        "_%s() {\n"
	        "    local cur=${COMP_WORDS[COMP_CWORD]} option='' i\n"
	        "    COMPREPLY=()\n"
	        "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
	        "        [[ ${COMP_WORDS[i]} == -- ]] && break\n"
	        "    done\n"
	        "    if ((i == COMP_CWORD)); then\n"
	        "        # \"--name=value\" comes as three words.\n"
	        "        option=${COMP_WORDS[COMP_CWORD - 1]}\n"
	        "        if [[ $cur == = ]]; then\n"
	        "            cur='' option+='='\n"
	        "        elif [[ $option == = ]]; then\n"
	        "            option=${COMP_WORDS[COMP_CWORD - 2]}=\n"
	        "        fi\n"
	        "    fi\n"
	        "    case $option in\n",
	        table->program);
	print_values(table, out);
	fputs("    *=) return ;;\n"
	      "    esac\n"
	      "    if [[ $option && $cur == -* ]]; then\n"
	      "        ",
	      out);
	fprintf(out, "_%s_words '", table->program);
	print_names(table, out);
	fputs("'\n"
	      "        [[ ${COMPREPLY[*]} == *= ]] && compopt -o nospace 2>/dev/null\n"
	      "        return\n"
	      "    fi\n",
	      out);
	if (table->command)
		print_command(table->program, out);
	fputs("    ", out);
	print_proposal(table->program, table->operand, NULL, out);
	fprintf(out, "\n}\n\ncomplete -F _%1$s %1$s\n", table->program);
}
