/* SPDX-License-Identifier: MIT */
/* memanalyze: what a dump file says. */
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "census/census_growth.h"
#include "census/census_page.h"
#include "debug_info/debug_package.h"
#include "debug_info/debug_server.h"
#include "dump/dump_reader.h"
#include "base/line_width.h"
#include "live/fleet_view.h"
#include "live/live_view.h"
#include "memanalyze_options.h"
#include "dumps/machine.h"
#include "dumps/newest_dump.h"
#include "forms/outputs.h"
#include "base/printable.h"
#include "input/progress.h"
#include "dumps/repeats.h"
#include "report/report.h"
#include "report_request.h"
#include "requested.h"
#include "base/size.h"
#include "symbol_request.h"
#include "symbols/symbol_writer.h"
#include "version.h"
#include "view_options.h"
#include "view_request.h"
#include "files/file_place.h"

#define CENSUS_ROWS 12u

enum { EXIT_PARTIAL = 1, EXIT_UNREADABLE = 2, EXIT_BAD_USAGE = 64 };

static struct progress progress;

struct arguments {
	char **paths;
	int path_count;
	char *newest;           /* the dump that is shown because none was named, … */
	size_t older;           /* … of one more than these */
	const char *directory;  /* that was given instead of dumps; NULL: none */
	struct machine machine; /* what is in it */
	bool top_given, by_given;
	const struct output_format *format; /* NULL: as the names of the files say */
	struct outputs outputs;
	struct report_options report;
	char debug_path[PATH_MAX];
	struct debug_server server;
	bool debuginfod;
	bool live;
	size_t batch; /* looks for scripts, 0: not asked for */
};

/* One message on the terminal, whatever is in the names of files. */
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	static const char from[] = "memanalyze: ";
	char line[3 * PATH_MAX];
	va_list ap;

	progress_clear(&progress);
	va_start(ap, format);
	vsnprintf(line, sizeof line, format, ap);
	va_end(ap);
	printable_copy(line, line, sizeof line);
	fputs(from, stderr);
	line_width_put(stderr, sizeof from - 1, 2, line);
}

static int complain(const char *path, const struct err *e)
{
	say("%s: %s", path, e->text);
	return EXIT_UNREADABLE;
}

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

static int parse_looks(struct arguments *a, const char *text, struct err *e)
{
	int r = parse_count("batch", text, &a->batch, e);

	return !r && !a->batch ? err_set(e, EINVAL, "--batch: at least 1") : r;
}

/* Between 0 and high percent, which are no such values themselves, as a fraction. */
static int parse_share(const char *option, const char *text, double high, double *value, struct err *e)
{
	double share;

	if (size_parse_percent(text, &share) || share <= 0 || share >= high / 100)
		return err_set(e, EINVAL, "--%s: '%s' is not a percentage between 0 and %g", option, text, high);
	*value = share;
	return 0;
}

static int parse_time(const char *option, const char *text, uint64_t *ns, struct err *e)
{
	int r = size_parse_time(text, ns, e);

	return r ? err_prefix(e, "--%s", option) : 0;
}

static int parse_by(const char *text, enum group_by *by, struct err *e)
{
	int value = group_by_parse(text);

	if (value < 0)
		return err_set(
			e, EINVAL,
			"--by: '%s' is none of stack, function, file, line, module, thread, size, lifetime, residency, "
			"type, holder, process, program, unit, container",
			text);
	*by = (enum group_by)value;
	return 0;
}

/* Made absolute and no more: to resolve the link /proc/PID/root gives "/". */
static int parse_debug_path(struct arguments *a, const char *text, struct err *e)
{
	AUTO_FREE char *here = text[0] == '/' ? strdup("") : getcwd(NULL, 0);
	struct stat st;

	if (stat(text, &st) || !here)
		return err_sys(e, "--debug-path: %s", text);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ENOTDIR, "--debug-path: %s is no directory", text);
	if ((size_t)snprintf(a->debug_path, sizeof a->debug_path, "%s%s%s", here, here[0] ? "/" : "", text) >=
	    sizeof a->debug_path)
		return err_set(e, ENAMETOOLONG, "--debug-path: %s is too long", text);
	a->report.search.debug_path = a->debug_path;
	return 0;
}

static int parse_option(struct arguments *a, int option, const char *value, struct err *e)
{
	int figure;

	switch (option) {
	case 'n': a->top_given = true; return parse_count("top", value, &a->report.top, e);
	case OPTION_DEPTH: return parse_count("depth", value, &a->report.depth, e);
	case 'b': a->by_given = true; return parse_by(value, &a->report.by, e);
	case 'c': return parse_share("confidence", value, 100, &a->report.confidence, e);
	case OPTION_PLAN: return parse_share("plan", value, 1000, &a->report.plan, e);
	case 'a': return parse_time("at", value, &a->report.at_ns, e);
	case 'i': return parse_time("since", value, &a->report.since_ns, e);
	case 'g': return parse_time("age", value, &a->report.age_ns, e);
	case 'x': a->report.diff = true; return 0;
	case 'l': a->report.leaks = true; return 0;
	case 'o': return outputs_add(&a->outputs, value, e);
	case 'j': return output_format_find("json", &a->format, e);
	case OPTION_FORMAT: return output_format_find(value, &a->format, e);
	case 'S': a->report.symbols = false; return 0;
	case OPTION_DEBUGINFOD: a->debuginfod = true; return 0;
	case OPTION_LIVE_VIEW: a->live = true; return 0;
	case OPTION_BATCH: a->live = true; return parse_looks(a, value, e);
	case 'F': a->report.full_names = true; return 0;
	case 'v': a->report.verbose = true; return 0;
	case 's':
		figure = report_figure_parse(value);
		if (figure < 0)
			return err_set(e, EINVAL,
			               "--sort: '%s' is none of live-bytes, live-count, allocated-bytes, "
			               "allocated-count",
			               value);
		a->report.sort = (enum report_figure)figure;
		return 0;
	case 'D': return parse_debug_path(a, value, e);
	case '?': return err_set(e, EINVAL, "%s", ""); /* getopt has said it */
	default: return view_option_parse(option, value, &a->report, e);
	}
}

static int check_live(const struct arguments *a, struct err *e)
{
	if (a->path_count != 1)
		return err_set(e, EINVAL, "--live takes one dump");
	if (a->format || a->outputs.count)
		return err_set(e, EINVAL, "--live shows text on a terminal, or with --batch: not with -o or --format");
	if (a->batch && a->directory)
		return err_set(e, EINVAL, "--batch is about one dump; memanalyze --json reads a directory");
	return live_check(&a->report, e);
}

/* What does not go together. */
static int check_arguments(const struct arguments *a, struct err *e)
{
	const struct report_options *o = &a->report;

	if (a->live)
		return check_live(a, e);
	if (o->diff && a->path_count != 2)
		return err_set(e, EINVAL, "--diff takes two dumps, the older first");
	if (o->diff && (o->at_ns || o->since_ns))
		return err_set(e, EINVAL, "--diff compares dumps, --since and --at times of one dump: not both");
	if (o->leaks && (o->diff || o->at_ns || o->since_ns))
		return err_set(e, EINVAL, "--leaks looks at whole sessions: not with --diff, --at or --since");
	if (o->since_ns && o->at_ns && o->since_ns >= o->at_ns)
		return err_set(e, EINVAL, "--since must be before --at");
	if (o->age_ns && !o->leaks)
		return err_set(e, EINVAL, "--age goes with --leaks");
	return view_options_check(o, a->path_count, e);
}

/* No dump was named. */
static int take_newest(struct arguments *a, struct err *e)
{
	int r = newest_dump_find(&a->newest, &a->older, e);

	a->paths = &a->newest;
	a->path_count = 1;
	return r;
}

/* All dumps of a directory; by process, unless something else is asked for that shows stacks. */
static void take_directory(struct arguments *a)
{
	const struct report_options *o = &a->report;
	struct err e;

	if (machine_read(&a->machine, a->directory, &e))
		exit(complain(a->directory, &e));
	a->paths = a->machine.paths;
	a->path_count = (int)a->machine.path_count;
	a->report.machine = &a->machine;
	if (!a->by_given && !a->outputs.count && !o->leaks && !(o->plan > 0) && !o->since_ns && !o->diff)
		a->report.by = BY_PROCESS;
}

static int ask_servers(struct arguments *a, struct err *e)
{
	int r = debug_server_open(&a->server, e);

	if (r)
		return err_prefix(e, "--debuginfod");
	a->report.search.server = &a->server;
	return 0;
}

/* 0 go on, 1 all is done, -errno. */
static int parse_arguments(struct arguments *a, int argc, char **argv, struct err *e)
{
	struct option_arrays known;
	int option, r;

	a->report = (struct report_options){ .confidence = ESTIMATE_CONFIDENCE,
		                             .symbols = true,
		                             .package_lists = DEBUG_PACKAGE_LISTS,
		                             .progress = &progress };
	option_table_arrays(&memanalyze_options, &known);
	while ((option = getopt_long(argc, argv, known.short_options, known.long_options, NULL)) != -1) {
		if (option == 'h') {
			option_table_help(&memanalyze_options, stdout);
			return 1;
		}
		if (option == 'V') {
			puts("memanalyze " MEMATTACH_VERSION);
			return 1;
		}
		r = parse_option(a, option, optarg, e);
		if (r)
			return r;
	}
	a->paths = argv + optind;
	a->path_count = argc - optind;
	r = a->path_count || a->report.diff ? 0 : take_newest(a, e);
	if (!r && a->path_count == 1 && file_place_is_directory(a->paths[0]))
		a->directory = a->paths[0];
	if (!r && a->directory && !a->live)
		take_directory(a);
	r = r ?: check_arguments(a, e);
	if (!r && a->debuginfod)
		r = ask_servers(a, e);
	r = r ?: outputs_settle(&a->outputs, a->format, &a->report, e);
	if (!r)
		outputs_ask(&a->outputs, &a->report, a->path_count);
	return r;
}

static bool wants_colour(void)
{
	const char *no = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no && no[0]) && term && strcmp(term, "dumb") != 0;
}

/* Two states of one session have one order. Of two sessions somebody may want to see the difference both ways. */
static bool order_is_sound(char **paths)
{
	struct repeat repeats[2];

	if (repeats_find(paths, 2, repeats) || repeats[1].of != 0 || repeats[1].same)
		return true;
	say("%s is a later state of the same session than %s: --diff takes the older dump first", paths[0], paths[1]);
	return false;
}

static int read_pair(struct report *report, char **paths)
{
	struct err e = { 0 };
	struct dump *old, *new;

	if (!order_is_sound(paths))
		return EXIT_UNREADABLE;
	if (dump_open(paths[0], &old, &e))
		return complain(paths[0], &e);
	if (dump_open(paths[1], &new, &e)) {
		dump_close(old);
		return complain(paths[1], &e);
	}
	int r = report_add_pair(report, old, paths[0], new, paths[1], &e);
	dump_close(old);
	dump_close(new);
	if (!r && report->sessions[0].start_ns < report->sessions[1].start_ns) {
		say("%s was recorded before %s: growth is shown backwards in time", paths[1], paths[0]);
	}
	return r ? complain(paths[1], &e) : 0;
}

static void name_repeat(char **paths, int i, const struct repeat *repeat)
{
	const char *latest = paths[repeat->of];

	if (repeat->same)
		say("%s: left out: it is the same dump as %s", paths[i], latest);
	else
		say("%s: left out: %s is a later state of the same session and holds all of it (--diff shows the "
		    "growth)",
		    paths[i], latest);
}

/* One after the other; those that cannot be read, and those that others repeat, are named and left out. */
static int read_all(struct report *report, char **paths, int count)
{
	AUTO_FREE struct repeat *repeats = calloc((size_t)count, sizeof *repeats);
	struct err none = { .text = "out of memory" };
	int status = 0;

	if (!repeats || repeats_find(paths, count, repeats))
		return complain(paths[0], &none);
	for (int i = 0; i < count; i++) {
		struct err e = { 0 };
		struct dump *dump;
		if (repeats[i].of != i) {
			name_repeat(paths, i, &repeats[i]);
			continue;
		}
		if (dump_open(paths[i], &dump, &e)) {
			complain(paths[i], &e);
			status = EXIT_PARTIAL;
			continue;
		}
		int r = report_add(report, dump, paths[i], &e);
		dump_close(dump);
		if (r)
			return complain(paths[i], &e);
	}
	return report->session_count ? status : EXIT_UNREADABLE;
}

/* The line of progress must be gone before a report is written to anything but a file: it would meet the report on the
 * same terminal, and stay there when the reader of a pipe goes away, as SIGPIPE ends memanalyze then. */
static bool writes_to_file(void)
{
	struct stat st;

	return !fstat(STDOUT_FILENO, &st) && S_ISREG(st.st_mode);
}

static int show_report(struct arguments *a, struct report *report)
{
	struct err e = { 0 };
	char name[PATH_MAX + 64];
	int status = a->report.diff ? read_pair(report, a->paths) : read_all(report, a->paths, a->path_count);

	if (status == EXIT_UNREADABLE)
		return status;
	if (report_finish(report, &e))
		return complain(a->paths[0], &e);
	if (a->report.diff)
		snprintf(name, sizeof name, "%.2000s -> %.2000s", a->paths[0], a->paths[1]);
	else if (report->session_count > 1 && a->directory)
		snprintf(name, sizeof name, "%.2000s", a->directory);
	else if (report->session_count > 1)
		snprintf(name, sizeof name, "%.2000s and %zu more", report->sessions[0].name,
		         report->session_count - 1);
	else
		snprintf(name, sizeof name, "%s", report->sessions[0].name);
	if (outputs_have_stdout(&a->outputs) && !writes_to_file())
		progress_stop(&progress);
	const struct output_style style = { .name = name,
		                            .colour = wants_colour(),
		                            .columns = isatty(STDOUT_FILENO) ? line_width(STDOUT_FILENO) : 0 };
	if (outputs_write(&a->outputs, report, a->top_given, &style, &e)) {
		say("%s", e.text);
		return EXIT_UNREADABLE;
	}
	progress_stop(&progress);
	for (size_t i = 0; i < report->session_count; i++) {
		if (report->sessions[i].whole)
			continue;
		say("%s: the dump is damaged or cut off: this is what could be read of it", report->sessions[i].name);
		status = EXIT_PARTIAL;
	}
	return status;
}

static int show_live(struct arguments *a)
{
	struct err e = { 0 };
	const struct live_options options = {
		.path = a->paths[0], .report = &a->report, .batch = a->batch, .colour = wants_colour()
	};

	const struct fleet_options fleet = { .directory = a->directory,
		                             .report = &a->report,
		                             .colour = options.colour };
	int r = a->directory ? fleet_view_run(&fleet, &e) : live_run(&options, &e);

	return r ? complain(a->paths[0], &e) : 0;
}

static int compare_censuses(const struct arguments *a)
{
	struct census_input old, new;
	struct census_growth growth;
	struct err e = { 0 };
	const struct output_format *json;
	int at = 0;

	if (census_input_open(&old, a->paths[0], &e))
		return complain(a->paths[0], &e);
	int r = census_input_open(&new, a->paths[1], &e);
	if (!r) {
		r = census_growth_make(&growth, &old, &new, &e);
		if (!r && !output_format_find("json", &json, &e) && a->format == json)
			census_growth_json(&growth, stdout);
		else if (!r)
			census_growth_text(&growth, a->top_given ? a->report.top : CENSUS_ROWS, stdout);
		census_growth_done(&growth);
		census_input_done(&new);
	} else {
		at = 1;
	}
	census_input_done(&old);
	return r ? complain(a->paths[at], &e) : 0;
}

/* One census, as a page. */
static int draw_census(struct arguments *a)
{
	struct output *output = a->outputs.list;
	struct census_input census;
	struct err e = { 0 };

	if (census_input_open(&census, a->paths[0], &e))
		return complain(a->paths[0], &e);
	int r = outputs_open(&a->outputs, a->paths, a->path_count, &e);
	if (!r && census_page(&census, a->paths[0], output->file.stream))
		r = err_set(&e, ENOMEM, "out of memory");
	r = r ?: output_file_finish(&output->file, &e);
	census_input_done(&census);
	if (r)
		say("%s", e.text);
	return r ? EXIT_UNREADABLE : 0;
}

static bool is_page(const struct arguments *a)
{
	const struct output_format *html = NULL;

	return a->path_count == 1 && a->outputs.count == 1 && !output_format_find("html", &html, ERR_IGNORED) &&
	       a->outputs.list->format == html;
}

/* A file of --census: what there is to see is how two of them differ, or one as a page. */
static bool is_census(const struct arguments *a, struct err *e)
{
	const char *census = NULL;
	const struct output_format *json = NULL, *text = NULL;

	for (int i = 0; i < a->path_count && !census; i++)
		census = census_input_is(a->paths[i]) ? a->paths[i] : NULL;
	if (!census)
		return false;
	if (!a->report.diff && !is_page(a))
		(void)err_set(e, EINVAL, "%s is a census: --diff compares it with another one, -o FILE.html draws it",
		              census);
	else if (!a->report.diff)
		return true;
	else if (a->outputs.count != 1 || strcmp(a->outputs.list->path, "-") != 0 ||
	         (a->format && (output_format_find("json", &json, e) || output_format_find("text", &text, e) ||
	                        (a->format != json && a->format != text))))
		(void)err_set(e, EINVAL, "two censuses are compared on standard output, as text or JSON");
	return true;
}

static int show(struct arguments *a)
{
	struct err e = { 0 };
	struct report report;

	if (is_census(a, &e)) {
		if (!e.code)
			return a->report.diff ? compare_censuses(a) : draw_census(a);
		say("%s", e.text);
		return EXIT_UNREADABLE;
	}
	if (outputs_open(&a->outputs, a->paths, a->path_count, &e)) {
		say("%s", e.text);
		return EXIT_UNREADABLE;
	}
	progress_start(&progress, STDERR_FILENO, PROGRESS_DELAY_NS);
	int status = report_init(&report, &a->report, &e) ? complain(a->paths[0], &e) : show_report(a, &report);

	progress_stop(&progress);
	report_done(&report);
	return status;
}

int main(int argc, char **argv)
{
	struct arguments arguments = { 0 };
	struct err e = { 0 };

	if (argc > 1 && !strcmp(argv[1], SYMBOL_REQUEST_OPTION))
		return symbol_writer_main(argc - 2, argv + 2);
	if (argc > 1 && !strcmp(argv[1], REPORT_REQUEST_OPTION))
		return requested_report_main(argc - 2, argv + 2);
	if (argc > 1 && !strcmp(argv[1], VIEW_REQUEST_OPTION))
		return requested_view_main(argc - 2, argv + 2, wants_colour());
	signal(SIGXFSZ, SIG_IGN); /* a write beyond a limit shall fail, and be said */
	int r = parse_arguments(&arguments, argc, argv, &e);
	if (r < 0) {
		if (e.text[0])
			say("%s", e.text);
		fputs("Try 'memanalyze --help'.\n", stderr);
		outputs_done(&arguments.outputs);
		return EXIT_BAD_USAGE;
	}
	/* libdwfl must not fetch debug files from the network by itself. */
	if (!arguments.debuginfod)
		unsetenv("DEBUGINFOD_URLS");
	if (arguments.newest)
		say("%s, the newest of %zu here", arguments.newest, arguments.older + 1);
	int status = r ? 0 : arguments.live ? show_live(&arguments) : show(&arguments);
	debug_server_close(&arguments.server);
	outputs_done(&arguments.outputs);
	machine_free(&arguments.machine);
	free(arguments.newest);
	free(arguments.report.alloc_fns);
	if (status != EXIT_UNREADABLE && (fflush(stdout) || ferror(stdout))) {
		say("cannot write: %s", strerror(errno));
		return EXIT_UNREADABLE;
	}
	return status;
}
