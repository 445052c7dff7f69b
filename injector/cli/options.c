/* SPDX-License-Identifier: MIT */
#include "cli/options.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/memattach_options.h"
#include "host/say.h"
#include "base/size.h"
#include "version.h"
#include "files/file_place.h"

#define DEFAULT_RATE (512ull << 10)
#define DEFAULT_MAX_BYTES (1ull << 30)
#define LEAST_MAX_BYTES (16ull << 20)
#define MAX_BYTES_END (64ull << 30) /* what a reference to a stack can reach, see dump_format.h */
#define DEFAULT_DEADLINE_NS 500000000ull
#define DEFAULT_MAX_OVERHEAD 0.01
#define DEFAULT_KEEP 24u
#define KEEP_MAX 1000000u
#define IN_ORDER 1 /* what getopt_long calls a word that is no option, where the short options begin with "-" */
#define RATE_MAX 0xffffffffull /* stored in 32 bits with each sample */

static __attribute__((format(printf, 1, 2))) int usage(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	AUTO_FREE char *text = say_format(format, ap);
	va_end(ap);
	say_error(0, "%s", text ? text : "a wrong option, and no memory to say which");
	fputs("Try 'memattach --help'.\n", stderr);
	return -EINVAL;
}

static int parse_pid(const char *text, pid_t *pid)
{
	char *end;

	errno = 0;
	long value = strtol(text, &end, 10);
	if (errno || *end || end == text || value <= 0 || value > 0x7fffffff)
		return usage("'%s' is not a process id", text);
	*pid = (pid_t)value;
	return 0;
}

static int parse_number(const char *text, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 0);
	return errno || *end || end == text ? usage("'%s' is not a number", text) : 0;
}

/* "off" is 0. */
static int parse_max_overhead(const char *text, double *overhead)
{
	double value;

	if (size_parse_percent(strcmp(text, "off") ? text : "0", &value) || value < 0 || value > 1)
		return usage("'%s' is not a percentage from 0 to 100", text);
	*overhead = value;
	return 0;
}

/* The number of text among names, -1 if it is none of them. */
static int number_of(const char *text, const char *const names[], int count)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(text, names[i]))
			return i;
	return -1;
}

static int parse_hooks(const char *text, enum hooks_mode *mode)
{
	static const char *const names[] = { [HOOKS_AUTO] = "auto", [HOOKS_GOT] = "got", [HOOKS_ENTRY] = "entry" };
	int found = number_of(text, names, 3);

	if (found < 0)
		return usage("--hooks %s: it is auto, got or entry", text);
	*mode = (enum hooks_mode)found;
	return 0;
}

static int parse_loader(const char *text, enum loader_mode *mode)
{
	static const char *const names[] = { [LOADER_AUTO] = "auto", [LOADER_TARGET] = "target", [LOADER_OWN] = "own" };
	int found = number_of(text, names, 3);

	if (found < 0)
		return usage("--loader %s: it is auto, target or own", text);
	*mode = (enum loader_mode)found;
	return 0;
}

static int parse_python_allocators(const char *text, enum python_objects *mode)
{
	static const char *const names[] = {
		[PYTHON_OBJECTS_AUTO] = "auto", [PYTHON_OBJECTS_ON] = "on", [PYTHON_OBJECTS_OFF] = "off"
	};
	int found = number_of(text, names, 3);

	if (found < 0)
		return usage("--python-allocators %s: it is auto, on or off", text);
	*mode = (enum python_objects)found;
	return 0;
}

static int parse_by(const char *text, enum census_by *by)
{
	static const char *const names[] = { [CENSUS_BY_REGION] = "region",
		                             [CENSUS_BY_SIZE] = "size",
		                             [CENSUS_BY_TYPE] = "type",
		                             [CENSUS_BY_HOLDER] = "holder" };

	for (unsigned i = CENSUS_BY_REGION; i < sizeof names / sizeof *names; i++)
		if (!strcmp(text, names[i])) {
			*by = (enum census_by)i;
			return 0;
		}
	return usage("--by %s: it is region, size, type or holder", text);
}

static int parse_given(const char *text, struct session_options *o)
{
	if (o->given_count == GIVEN_MAX)
		return usage("--hook can be given %u times", GIVEN_MAX);
	if (!given_name_parse(text, &o->given[o->given_count]))
		return usage("--hook %s: it is NAME=malloc, NAME=malloc:1, NAME=calloc, NAME=realloc or NAME=free",
		             text);
	o->given_count++;
	return 0;
}

static int add_report(const char *file, struct session_options *o)
{
	if (o->report_count == SESSION_REPORTS_MAX)
		return usage("--report can be given %u times", SESSION_REPORTS_MAX);
	for (unsigned i = 0; i < o->report_count; i++)
		if (!strcmp(o->reports[i], file))
			return usage("--report %s is given twice", file);
	o->reports[o->report_count++] = file;
	return 0;
}

/* A bare word: the process. */
static int take_word(const char *text, struct session_options *o)
{
	if (o->pid)
		return usage("what is '%s'? The process is %d", text, o->pid);
	return parse_pid(text, &o->pid);
}

static int parse_when(const char *text, struct session_options *o)
{
	struct err e;

	if (o->trigger_count == TRIGGERS_MAX)
		return usage("--when can be given %u times", TRIGGERS_MAX);
	if (trigger_parse(text, &o->triggers[o->trigger_count], &e) < 0)
		return usage("--when: %s", e.text);
	o->trigger_count++;
	return 0;
}

static int parse_keep(const char *text, unsigned *keep)
{
	uint64_t number = 0;

	if (parse_number(text, &number) < 0)
		return -EINVAL;
	if (number < 1 || number > KEEP_MAX)
		return usage("--keep %s: it is a number from 1 to %u", text, KEEP_MAX);
	*keep = (unsigned)number;
	return 0;
}

static int parse_rate(const char *text, uint64_t *bytes)
{
	struct err e;

	if (size_parse(text, bytes, &e) < 0)
		return usage("%s", e.text);
	return *bytes == 0 || *bytes > RATE_MAX ? usage("a rate of %s is not possible: 1 … 4G-1", text) : 0;
}

static int parse_max_size(const char *text, uint64_t *bytes)
{
	struct err e;

	if (size_parse(text, bytes, &e) < 0)
		return usage("%s", e.text);
	if (*bytes < LEAST_MAX_BYTES)
		return usage("--max-size %s is too small: at least 16M", text);
	return *bytes >= MAX_BYTES_END ? usage("--max-size %s is too large: less than 64G", text) : 0;
}

static int choose_by(struct selection *s, enum chosen_by by, const char *what)
{
	if (s->what)
		return usage("%s", "--name, --cgroup and --unit: one of them, once");
	if (!what[0])
		return usage("%s", "--name, --cgroup and --unit want a name");
	s->by = by;
	s->what = what;
	return 0;
}

static int parse_selection(int c, const char *argument, struct selection *s)
{
	switch (c) {
	case OPTION_NAME: return choose_by(s, CHOSEN_BY_NAME, argument);
	case OPTION_CGROUP: return choose_by(s, CHOSEN_BY_CGROUP, argument);
	case OPTION_UNIT: return choose_by(s, CHOSEN_BY_UNIT, argument);
	case OPTION_SYSTEM: s->system = true; return 0;
	case OPTION_CHILDREN: s->children = true; return 0;
	default: s->all = true; return 0;
	}
}

static int parse_one(int c, const char *argument, struct session_options *o, enum command *command,
                     struct selection *selection)
{
	struct err e;
	int rc = 0;

	switch (c) {
	case 'p': return parse_pid(argument, &o->pid);
	case 'r': return parse_rate(argument, &o->rate_bytes);
	case 'o': o->output = argument; break;
	case 'd': rc = size_parse_time(argument, &o->duration_ns, &e); break;
	case OPTION_MAX_OVERHEAD: return parse_max_overhead(argument, &o->max_overhead);
	case OPTION_MAX_SIZE: return parse_max_size(argument, &o->max_bytes);
	case OPTION_RECEIPT: o->receipt = argument; break;
	case OPTION_REPORT: return add_report(argument, o);
	case IN_ORDER: return take_word(argument, o);
	case OPTION_WHEN: return parse_when(argument, o);
	case OPTION_EVERY: rc = size_parse_time(argument, &o->every_ns, &e); break;
	case OPTION_KEEP: return parse_keep(argument, &o->keep);
	case OPTION_NAME:
	case OPTION_CGROUP:
	case OPTION_UNIT:
	case OPTION_ALL:
	case OPTION_SYSTEM:
	case OPTION_CHILDREN: return parse_selection(c, argument, selection);
	case OPTION_DETACH: *command = COMMAND_DETACH; break;
	case OPTION_DOCTOR: *command = COMMAND_DOCTOR; break;
	case OPTION_CENSUS: *command = COMMAND_CENSUS; break;
	case OPTION_FOR: rc = size_parse_time(argument, &o->for_ns, &e); break;
	case OPTION_BY: return parse_by(argument, &o->by);
	case OPTION_HOLDERS: o->holders = true; break;
	case OPTION_UNREACHABLE: o->unreachable = true; break;
	case OPTION_CLONE: o->clone = true; break;
	case OPTION_FREEZE: o->freeze = true; break;
	case OPTION_MAX_STOP: rc = size_parse_time(argument, &o->max_stop_ns, &e); break;
	case OPTION_BUDGET: rc = size_parse_time(argument, &o->budget_ns, &e); break;
	case OPTION_JSON: o->json = true; break;
	case OPTION_MMAP: o->groups |= GROUP_BIT(GROUP_MMAP); break;
	case OPTION_HOOKS: return parse_hooks(argument, &o->hooks);
	case OPTION_PYTHON_ALLOCATORS: return parse_python_allocators(argument, &o->python_objects);
	case OPTION_LOADER: return parse_loader(argument, &o->loader);
	case OPTION_HOOK: return parse_given(argument, o);
	case OPTION_SEED: return parse_number(argument, &o->seed);
	case OPTION_DEADLINE: rc = size_parse_time(argument, &o->deadline_ns, &e); break;
	case OPTION_NO_CACHE: o->no_cache = true; break;
	case OPTION_LIVE: o->live = true; break;
	case OPTION_NO_SYMBOLS: o->no_symbols = true; break;
	case 'q': o->quiet = true; break;
	case 'v': o->verbose = true; break;
	case 'h':
		option_table_help(&memattach_options, stdout);
		*command = COMMAND_NONE;
		break;
	case 'V':
		puts("memattach " MEMATTACH_VERSION);
		*command = COMMAND_NONE;
		break;
	default: fputs("Try 'memattach --help'.\n", stderr); return -EINVAL;
	}
	return rc < 0 ? usage("%s", e.text) : 0;
}

/* When sessions begin, and how many there are. */
static int check_times(struct session_options *o, enum command command)
{
	if (command == COMMAND_CENSUS && o->every_ns && !o->trigger_count && !o->keep)
		return o->for_ns ? usage("%s", "--every looks again and again: not with --for") : 0;
	if (command != COMMAND_PROFILE && (o->trigger_count || o->every_ns))
		return usage("%s", o->every_ns ? "--every goes with an attach" : "--when goes with an attach");
	if (o->keep && !o->every_ns)
		return usage("%s", "--keep goes with --every");
	for (unsigned i = 0; o->every_ns && i < o->report_count; i++)
		if (!strcmp(o->reports[i], "-"))
			return usage("%s", "--report -: with --every the names of the dumps go to standard output");
	if (o->every_ns && (!o->duration_ns || o->duration_ns >= o->every_ns))
		return usage("%s", "--every wants --duration, how long each session is; it is less than --every");
	o->keep = o->keep ? o->keep : DEFAULT_KEEP;
	return 0;
}

/* What follows "--", which alone leaves words behind (IN_ORDER). */
static int take_program(char **words, const struct session_options *o, enum command *command, struct selection *s)
{
	if (!words[0])
		return 0;
	if (o->pid || s->what || *command != COMMAND_PROFILE)
		return usage("'%s' is a command to be started: with no other process, --detach, --doctor or --census",
		             words[0]);
	*command = COMMAND_LAUNCH;
	s->program = words;
	return 0;
}

static int check_system(const struct session_options *o, enum command command, const struct selection *s)
{
	if (command != COMMAND_PROFILE || o->pid)
		return usage("%s",
		             "--system profiles processes: not with a PID, a command, --detach, --doctor or --census");
	if (s->all || s->children || o->trigger_count || o->every_ns || o->live)
		return usage("%s", "--system takes all there is, now and later: not with --all, --children, --when, "
		                   "--every or --live (memanalyze --live DIRECTORY shows what it records)");
	if (!o->output)
		return usage("%s", "--system wants -o DIRECTORY, for its dumps");
	if (o->receipt || o->report_count || o->json)
		return usage("%s", "--receipt, --report and --json are about one process: not with --system");
	return 0;
}

/* What does not go together. */
static int check_selection(const struct session_options *o, enum command command, const struct selection *s)
{
	bool session = command == COMMAND_PROFILE || command == COMMAND_LAUNCH, several = s->all || s->children;

	if (s->system)
		return check_system(o, command, s);
	if (s->all && command == COMMAND_DETACH && !o->pid)
		return 0;
	if (!o->pid && !s->what && !s->program)
		return usage("%s", "which process? Give its PID, --name, or -- and a command");
	if (o->pid && s->what)
		return usage("%s", "a PID says it all: not with --name, --cgroup or --unit");
	if (s->all && !s->what)
		return usage("%s", "--all goes with --name, --cgroup or --unit");
	if (several && !session)
		return usage("%s", "--all and --children go with a session");
	if (several && o->output && !file_place_is_directory(o->output))
		return usage("-o %s is no directory: with --all or --children each session has a dump of its own",
		             o->output);
	if (several && o->receipt)
		return usage("%s", "--receipt names one file: not with --all or --children");
	for (unsigned i = 0; several && i < o->report_count; i++)
		if (!strcmp(o->reports[i], "-"))
			return usage("%s", "--report -: with --all and --children several sessions would write there");
	if (o->report_count && !session)
		return usage("%s",
		             "--report goes with a session of this memattach; memanalyze -o writes one of a dump");
	if (o->json && command != COMMAND_CENSUS)
		return usage("%s", "--json goes with --census");
	if ((o->for_ns || o->by) && command != COMMAND_CENSUS)
		return usage("%s", o->by ? "--by goes with --census" : "--for goes with --census");
	if (o->unreachable && command != COMMAND_CENSUS)
		return usage("%s", "--unreachable goes with --census");
	if ((o->freeze || o->clone) && !o->unreachable)
		return usage("%s", o->freeze ? "--freeze goes with --unreachable" : "--clone goes with --unreachable");
	if (o->freeze && o->clone)
		return usage("%s", "--clone and --freeze exclude each other");
	if (command == COMMAND_CENSUS && o->deadline_ns && !o->unreachable)
		return usage("%s", "--census --deadline goes with --unreachable");
	if (o->holders && !session)
		return usage("%s", "--holders goes with a session; --census --by holder tells of all blocks");
	if (!o->unreachable && (o->max_stop_ns || (o->budget_ns && o->by != CENSUS_BY_HOLDER && !o->holders)))
		return usage("%s",
		             o->budget_ns ? "--budget goes with --unreachable" : "--max-stop goes with --unreachable");
	if (s->children && (o->trigger_count || o->every_ns))
		return usage("%s", "--children goes with one session from now on: not with --when or --every");
	return 0;
}

static int check_live_census(const struct session_options *o)
{
	if (o->unreachable || o->by == CENSUS_BY_HOLDER)
		return usage("%s", "--census --live looks all the time: not with --unreachable or --by holder, which "
		                   "follow all pointers");
	if (o->for_ns || o->json || o->output)
		return usage("%s", "--census --live is for the eye: not with --for, --json or --output; --every TIME "
		                   "looks again and again without it");
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return usage("%s", "--live needs a terminal; --census --every TIME writes look after look");
	return 0;
}

/* It takes the terminal for itself. */
static int check_live(const struct session_options *o, enum command command, const struct selection *s)
{
	if (command == COMMAND_CENSUS)
		return check_live_census(o);
	if (o->every_ns)
		return usage("%s", "--live shows one session: not with --every");
	if (s->all || s->children || command == COMMAND_LAUNCH)
		return usage("%s", "--live has the terminal for one session: not with --all, --children or a command");
	if (command == COMMAND_PROFILE && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
		return usage("%s", "--live needs a terminal; memanalyze --batch N reads the dump as it grows");
	return 0;
}

/* Of the first option that would do nothing. */
static int check_used(const bool given[OPTION_ROWS_MAX], enum command command)
{
	static const struct {
		unsigned use;
		const char *name;
	} commands[] = { [COMMAND_DETACH] = { USED_BY_DETACH, "detach" },
		         [COMMAND_DOCTOR] = { USED_BY_DOCTOR, "doctor" },
		         [COMMAND_CENSUS] = { USED_BY_CENSUS, "census" } };
	const struct option_row *rows = memattach_options.rows;

	if (command != COMMAND_DETACH && command != COMMAND_DOCTOR && command != COMMAND_CENSUS)
		return 0;
	for (unsigned i = 0; i < OPTION_ROWS_MAX && !option_row_is_end(&rows[i]); i++)
		if (given[i] && !(rows[i].uses & commands[command].use))
			return usage("--%s does nothing with --%s", rows[i].name, commands[command].name);
	return 0;
}

static void note_given(bool given[OPTION_ROWS_MAX], int code)
{
	const struct option_row *rows = memattach_options.rows;

	for (unsigned i = 0; i < OPTION_ROWS_MAX && !option_row_is_end(&rows[i]); i++)
		given[i] |= rows[i].name && rows[i].code == code;
}

int options_parse(int argc, char **argv, struct session_options *o, enum command *command, struct selection *selection)
{
	struct option_arrays known;
	bool given[OPTION_ROWS_MAX] = { false };
	char in_order[sizeof known.short_options + 1];

	*o = (struct session_options){
		.rate_bytes = DEFAULT_RATE,
		.max_bytes = DEFAULT_MAX_BYTES,
		.max_overhead = -1,
		.groups = GROUP_BIT(GROUP_MALLOC) | GROUP_BIT(GROUP_JEMALLOC),
	};
	*command = COMMAND_PROFILE;
	*selection = (struct selection){ 0 };
	option_table_arrays(&memattach_options, &known);
	snprintf(in_order, sizeof in_order, "-%s", known.short_options);
	for (int c; (c = getopt_long(argc, argv, in_order, known.long_options, NULL)) != -1;) {
		note_given(given, c);
		int rc = parse_one(c, optarg, o, command, selection);
		if (rc < 0 || *command == COMMAND_NONE)
			return rc;
	}
	int rc = take_program(argv + optind, o, command, selection);
	rc = rc ?: check_selection(o, *command, selection);
	rc = rc ?: check_times(o, *command);
	rc = rc ?: check_used(given, *command);
	if (rc == 0 && o->live)
		rc = check_live(o, *command, selection);
	if (rc < 0)
		return rc;
	o->deadline_ns = o->deadline_ns ? o->deadline_ns : DEFAULT_DEADLINE_NS;
	/* Who asks for every allocation wants exact figures; who limits the cost as well wants the limit. */
	if (o->max_overhead < 0)
		o->max_overhead = o->rate_bytes == 1 ? 0 : DEFAULT_MAX_OVERHEAD;
	return 0;
}
