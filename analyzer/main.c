/* SPDX-License-Identifier: MIT */
/* memanalyze: what a dump file says. */
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "dump_reader.h"
#include "report.h"
#include "report_json.h"
#include "report_text.h"
#include "version.h"

enum { EXIT_PARTIAL = 1, EXIT_UNREADABLE = 2, EXIT_BAD_USAGE = 64 };

#define TEXT_TOP 20

struct arguments {
	const char *path;
	bool json;
	bool top_given;
	struct report_options report;
	char debug_path[PATH_MAX];
};

static const char help[] =
	"Usage: memanalyze [OPTION]... DUMP\n"
	"Shows what a dump of memattach says about the heap of its target.\n"
	"\n"
	"  -n, --top=N               show the first N stacks, 0: all (20; with --json all)\n"
	"  -s, --sort=FIGURE         sort by live-bytes (default), live-count, allocated-bytes\n"
	"                            or allocated-count\n"
	"  -d, --depth=N             show N frames of each stack, 0: all (default)\n"
	"  -j, --json                write JSON\n"
	"  -c, --confidence=PERCENT  of the intervals (95)\n"
	"  -D, --debug-path=DIR      look for programs and debug files here, too\n"
	"  -S, --no-symbols          show modules and offsets only\n"
	"  -h, --help                show this help\n"
	"  -V, --version             show the version\n"
	"\n"
	"Exit status: 0 all was read, 1 the dump is damaged and was read in part,\n"
	"2 it could not be read, 64 wrong usage.\n";

static const struct option long_options[] = {
	{ "top", required_argument, NULL, 'n' },
	{ "sort", required_argument, NULL, 's' },
	{ "depth", required_argument, NULL, 'd' },
	{ "json", no_argument, NULL, 'j' },
	{ "confidence", required_argument, NULL, 'c' },
	{ "debug-path", required_argument, NULL, 'D' },
	{ "no-symbols", no_argument, NULL, 'S' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static int parse_count(const char *option, const char *text, size_t *value, struct err *e)
{
	char *end;

	errno = 0;
	unsigned long n = strtoul(text, &end, 10);
	if (errno || *end || text[0] < '0' || text[0] > '9')
		return err_set(e, EINVAL, "--%s: '%s' is not a number", option, text);
	*value = n;
	return 0;
}

static int parse_confidence(const char *text, double *value, struct err *e)
{
	char *end;
	double percent = strtod(text, &end);

	if (*end == '%')
		end++;
	if (end == text || *end || !(percent >= 1) || !(percent <= 99.9999))
		return err_set(e, EINVAL, "--confidence: '%s' is not a percentage from 1 to 99.9999", text);
	*value = percent / 100;
	return 0;
}

static int parse_option(struct arguments *a, int option, const char *value, struct err *e)
{
	int figure;

	switch (option) {
	case 'n': a->top_given = true; return parse_count("top", value, &a->report.top, e);
	case 'd': return parse_count("depth", value, &a->report.depth, e);
	case 'c': return parse_confidence(value, &a->report.confidence, e);
	case 'j': a->json = true; return 0;
	case 'S': a->report.symbols = false; return 0;
	case 's':
		figure = report_figure_parse(value);
		if (figure < 0)
			return err_set(e, EINVAL, "--sort: '%s' is none of live-bytes, live-count, allocated-bytes, "
				       "allocated-count", value);
		a->report.sort = (enum report_figure)figure;
		return 0;
	case 'D':
		if (!realpath(value, a->debug_path))
			return err_sys(e, "--debug-path: %s", value);
		a->report.search.debug_path = a->debug_path;
		return 0;
	default: return err_set(e, EINVAL, "%s", ""); /* getopt has said it */
	}
}

/* 0 go on, 1 all is done, -errno. */
static int parse_arguments(struct arguments *a, int argc, char **argv, struct err *e)
{
	int option;

	a->report = (struct report_options){ .confidence = ESTIMATE_CONFIDENCE, .top = TEXT_TOP, .symbols = true };
	while ((option = getopt_long(argc, argv, "n:s:d:jc:D:ShV", long_options, NULL)) != -1) {
		if (option == 'h') {
			fputs(help, stdout);
			return 1;
		}
		if (option == 'V') {
			puts("memanalyze " MEMATTACH_VERSION);
			return 1;
		}
		int r = parse_option(a, option, optarg, e);
		if (r)
			return r;
	}
	if (optind + 1 != argc)
		return err_set(e, EINVAL, optind == argc ? "which dump?" : "one dump at a time");
	a->path = argv[optind];
	if (a->json && !a->top_given)
		a->report.top = 0;
	return 0;
}

static bool wants_colour(void)
{
	const char *no = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no && no[0]) && term && strcmp(term, "dumb") != 0;
}

static int show(const struct arguments *a)
{
	struct err e = { 0 };
	struct dump *dump;
	struct report report;

	if (dump_open(a->path, &dump, &e)) {
		fprintf(stderr, "memanalyze: %s: %s\n", a->path, e.text);
		return EXIT_UNREADABLE;
	}
	if (report_make(&report, dump, &a->report, &e)) {
		fprintf(stderr, "memanalyze: %s: %s\n", a->path, e.text);
		dump_close(dump);
		return EXIT_UNREADABLE;
	}
	if (a->json)
		report_json(&report, stdout);
	else
		report_text(&report, a->path, stdout, wants_colour());
	int status = report.complete ? 0 : EXIT_PARTIAL;
	if (!report.complete)
		fprintf(stderr, "memanalyze: %s: the dump is damaged or cut off: this is what could be read of it\n", a->path);
	report_done(&report);
	dump_close(dump);
	return status;
}

int main(int argc, char **argv)
{
	struct arguments arguments = { 0 };
	struct err e = { 0 };

	/* libdwfl must not fetch debug files from the network. */
	unsetenv("DEBUGINFOD_URLS");
	int r = parse_arguments(&arguments, argc, argv, &e);
	if (r < 0) {
		if (e.text[0])
			fprintf(stderr, "memanalyze: %s\n", e.text);
		fputs("Try 'memanalyze --help'.\n", stderr);
		return EXIT_BAD_USAGE;
	}
	int status = r ? 0 : show(&arguments);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "memanalyze: cannot write: %s\n", strerror(errno));
		return EXIT_UNREADABLE;
	}
	return status;
}
