/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "size.h"
#include "version.h"

#define DEFAULT_RATE (512ull << 10)
#define DEFAULT_MAX_BYTES (1ull << 30)
#define LEAST_MAX_BYTES (16ull << 20)
#define MAX_BYTES_END (64ull << 30) /* what a reference to a stack can reach, see dump_format.h */
#define DEFAULT_DEADLINE_NS 500000000ull
#define DEFAULT_MAX_OVERHEAD 0.01
#define RATE_MAX 0xffffffffull /* stored in 32 bits with each sample */

enum {
	OPTION_MAX_SIZE = 256,
	OPTION_MAX_OVERHEAD,
	OPTION_RECEIPT,
	OPTION_DETACH,
	OPTION_DOCTOR,
	OPTION_MMAP,
	OPTION_HOOKS,
	OPTION_HOOK,
	OPTION_SEED,
	OPTION_LOADER,
	OPTION_DEADLINE,
	OPTION_NO_CACHE,
	OPTION_NO_SYMBOLS
};

static const struct option long_options[] = {
	{ "pid", required_argument, NULL, 'p' },
	{ "rate", required_argument, NULL, 'r' },
	{ "output", required_argument, NULL, 'o' },
	{ "duration", required_argument, NULL, 'd' },
	{ "max-overhead", required_argument, NULL, OPTION_MAX_OVERHEAD },
	{ "max-size", required_argument, NULL, OPTION_MAX_SIZE },
	{ "receipt", required_argument, NULL, OPTION_RECEIPT },
	{ "detach", no_argument, NULL, OPTION_DETACH },
	{ "doctor", no_argument, NULL, OPTION_DOCTOR },
	{ "mmap", no_argument, NULL, OPTION_MMAP },
	{ "hooks", required_argument, NULL, OPTION_HOOKS },
	{ "hook", required_argument, NULL, OPTION_HOOK },
	{ "seed", required_argument, NULL, OPTION_SEED },
	{ "loader", required_argument, NULL, OPTION_LOADER },
	{ "deadline", required_argument, NULL, OPTION_DEADLINE },
	{ "no-cache", no_argument, NULL, OPTION_NO_CACHE },
	{ "no-symbols", no_argument, NULL, OPTION_NO_SYMBOLS },
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

static void help(void)
{
	fputs("Usage: memattach -p PID [OPTION]...\n"
	      "       memattach --detach -p PID\n"
	      "       memattach --doctor -p PID\n"
	      "Samples the heap of a running process until Ctrl-C, then leaves it as it was.\n"
	      "\n"
	      "  -p, --pid PID         the process\n"
	      "  -r, --rate SIZE       mean bytes between two samples, default 512k; 1 records\n"
	      "                        every allocation\n"
	      "  -o, --output FILE     the dump; must not exist. Default\n"
	      "                        memattach.COMM.PID.YYYYMMDD-HHMMSS.dump\n"
	      "  -d, --duration TIME   detach after 30s, 5m, 1h; default: when told\n"
	      "      --max-overhead PERCENT  of the CPU time for sampling, default 1, off with\n"
	      "                        -r 1: SIZE of -r is raised while it takes more; 0: never\n"
	      "      --max-size SIZE   the dump never grows beyond, in memory and on disk,\n"
	      "                        default 1G\n"
	      "      --receipt FILE    write what was done to the process as JSON\n"
	      "      --detach          end the session in PID that another memattach runs or,\n"
	      "                        if it died, left behind; what that recorded is saved\n"
	      "                        (-o)\n"
	      "      --doctor          tell what an attach would meet, without touching PID\n"
	      "      --mmap            sample anonymous mmap, mremap and munmap too\n"
	      "      --hooks MODE      got: change words through which modules call the allocator;\n"
	      "                        entry: the first instructions of its functions; auto,\n"
	      "                        the default: these where words cannot see the calls\n"
	      "      --hook POOL       NAME=malloc, =malloc:1 (size in the second argument),\n"
	      "                        =calloc, =realloc, =free: a function of the program is\n"
	      "                        an allocation function, too; may be repeated\n"
	      "      --loader WHOSE    target: the process's own loader takes the recorder in;\n"
	      "                        own: memattach maps it; auto, the default: that where the\n"
	      "                        process's cannot\n"
	      "      --seed N          of the random numbers, for tests\n"
	      "      --deadline TIME   how long to look for a thread at a safe point, default\n"
	      "                        500ms\n"
	      "      --no-cache        neither use nor keep unwind tables in ~/.cache/memattach\n"
	      "      --no-symbols      do not put the names of functions into the dump\n"
	      "  -q, --quiet           errors only\n"
	      "  -v, --verbose         say more\n"
	      "  -h, --help            this text\n"
	      "  -V, --version         the version\n"
	      "\n"
	      "SIZE takes k, M, G (binary); TIME takes ms, s, m, h. Read the dump with memanalyze.\n"
	      "Exit status: 0 done, the process as before; 1 not attached, nothing changed;\n"
	      "2 detached but something had to stay (named); 3 detached, but the end of the\n"
	      "recording could not be written; 64 wrong usage.\n",
	      stdout);
}

static __attribute__((format(printf, 1, 2))) int usage(const char *format, ...)
{
	va_list ap;

	fputs("memattach: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputs("\nTry 'memattach --help'.\n", stderr);
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

	if (percent_parse(strcmp(text, "off") ? text : "0", &value) || value < 0 || value > 1)
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

static int parse_one(int c, const char *argument, struct session_options *o, enum command *command)
{
	struct err e;
	int rc = 0;

	switch (c) {
	case 'p': return parse_pid(argument, &o->pid);
	case 'r':
		rc = size_parse(argument, &o->rate_bytes, &e);
		if (rc == 0 && (o->rate_bytes == 0 || o->rate_bytes > RATE_MAX))
			return usage("a rate of %s is not possible: 1 … 4G-1", argument);
		break;
	case 'o': o->output = argument; break;
	case 'd': rc = time_parse(argument, &o->duration_ns, &e); break;
	case OPTION_MAX_OVERHEAD: return parse_max_overhead(argument, &o->max_overhead);
	case OPTION_MAX_SIZE:
		rc = size_parse(argument, &o->max_bytes, &e);
		if (rc == 0 && o->max_bytes < LEAST_MAX_BYTES)
			return usage("--max-size %s is too small: at least 16M", argument);
		if (rc == 0 && o->max_bytes >= MAX_BYTES_END)
			return usage("--max-size %s is too large: less than 64G", argument);
		break;
	case OPTION_RECEIPT: o->receipt = argument; break;
	case OPTION_DETACH: *command = COMMAND_DETACH; break;
	case OPTION_DOCTOR: *command = COMMAND_DOCTOR; break;
	case OPTION_MMAP: o->groups |= GROUP_BIT(GROUP_MMAP); break;
	case OPTION_HOOKS: return parse_hooks(argument, &o->hooks);
	case OPTION_LOADER: return parse_loader(argument, &o->loader);
	case OPTION_HOOK: return parse_given(argument, o);
	case OPTION_SEED: return parse_number(argument, &o->seed);
	case OPTION_DEADLINE: rc = time_parse(argument, &o->deadline_ns, &e); break;
	case OPTION_NO_CACHE: o->no_cache = true; break;
	case OPTION_NO_SYMBOLS: o->no_symbols = true; break;
	case 'q': o->quiet = true; break;
	case 'v': o->verbose = true; break;
	case 'h':
		help();
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

int options_parse(int argc, char **argv, struct session_options *o, enum command *command)
{
	*o = (struct session_options){
		.rate_bytes = DEFAULT_RATE,
		.max_bytes = DEFAULT_MAX_BYTES,
		.max_overhead = -1,
		.deadline_ns = DEFAULT_DEADLINE_NS,
		.groups = GROUP_BIT(GROUP_MALLOC) | GROUP_BIT(GROUP_JEMALLOC),
	};
	*command = COMMAND_PROFILE;
	for (int c; (c = getopt_long(argc, argv, "p:r:o:d:qvhV", long_options, NULL)) != -1;) {
		int rc = parse_one(c, optarg, o, command);
		if (rc < 0 || *command == COMMAND_NONE)
			return rc;
	}
	if (optind < argc)
		return usage("what is '%s'? The process is given with -p", argv[optind]);
	if (o->pid == 0)
		return usage("%s", "which process? Give -p PID");
	/* Who asks for every allocation wants exact figures; who limits the cost as well wants the limit. */
	if (o->max_overhead < 0)
		o->max_overhead = o->rate_bytes == 1 ? 0 : DEFAULT_MAX_OVERHEAD;
	return 0;
}
