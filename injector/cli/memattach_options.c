/* SPDX-License-Identifier: MIT */
#include "cli/memattach_options.h"

static const struct option_row rows[] = {
	{ .group = "Process" },
	{ .code = 'p',
	  .name = "pid",
	  .uses = USED_BY_ALL,
	  .argument = "PID",
	  .value = OPTION_VALUE_PID,
	  .help = "the process to profile; PID alone says the same" },
	{ .code = OPTION_NAME,
	  .name = "name",
	  .uses = USED_BY_ALL,
	  .argument = "NAME",
	  .help = "the process that is called so, by its comm or program, else its command line; several are listed" },
	{ .code = OPTION_CGROUP,
	  .name = "cgroup",
	  .uses = USED_BY_ALL,
	  .argument = "PATH",
	  .value = OPTION_VALUE_DIRECTORY,
	  .help = "the process in this cgroup, or below: /sys/fs/cgroup/… or as in /proc/PID/cgroup" },
	{ .code = OPTION_UNIT,
	  .name = "unit",
	  .uses = USED_BY_ALL,
	  .argument = "UNIT",
	  .help = "the process in this unit of systemd; .service may be left out" },
	{ .code = OPTION_ALL,
	  .name = "all",
	  .uses = USED_BY_DETACH,
	  .help = "where several are found: all of them, each with a session and a dump of its own; with --detach: "
	          "all processes that something of memattach is in" },
	{ .code = OPTION_SYSTEM,
	  .name = "system",
	  .help = "every process that may be attached to, also those that begin later; with --name, --cgroup or --unit "
	          "every one that fits. -o is a directory; --max-overhead and --max-size are for all together" },
	{ .code = OPTION_CHILDREN,
	  .name = "children",
	  .help = "also the processes that it makes, from their first fifth of a second on, each with a session "
	          "and a dump of its own" },

	{ .group = "What to do, instead of a session" },
	{ .code = OPTION_DETACH,
	  .name = "detach",
	  .uses = USED_BY_DETACH,
	  .help = "end the session in PID that another memattach runs or, if it died, left behind; what that recorded "
	          "is saved (-o)" },
	{ .code = OPTION_DOCTOR,
	  .name = "doctor",
	  .uses = USED_BY_DOCTOR,
	  .help = "tell what an attach would meet, without touching PID" },
	{ .code = OPTION_CENSUS,
	  .name = "census",
	  .uses = USED_BY_CENSUS,
	  .help = "tell what the resident memory of PID is, all of it, without touching PID" },
	{ .code = OPTION_FOR,
	  .name = "for",
	  .uses = USED_BY_CENSUS,
	  .argument = "TIME",
	  .help = "look twice, so far apart, and tell what of --census grows" },
	{ .code = OPTION_BY,
	  .name = "by",
	  .uses = USED_BY_CENSUS,
	  .argument = "WHAT",
	  .value = OPTION_VALUE_WORDS,
	  .words = "region size type holder",
	  .help = "show --census by mapping, or its live blocks by size, type or holder" },
	{ .code = OPTION_UNREACHABLE,
	  .name = "unreachable",
	  .uses = USED_BY_CENSUS,
	  .help = "with --census: also which blocks of malloc nothing points to; stops PID for the moment in which "
	          "it is cloned, or else its memory is read" },
	{ .code = OPTION_CLONE,
	  .name = "clone",
	  .uses = USED_BY_CENSUS,
	  .help = "clone PID for --unreachable even if that splits its huge pages" },
	{ .code = OPTION_FREEZE,
	  .name = "freeze",
	  .uses = USED_BY_CENSUS,
	  .help = "make no clone for --unreachable: PID is stopped while its memory is read, and nothing is changed" },
	{ .code = OPTION_MAX_STOP,
	  .name = "max-stop",
	  .uses = USED_BY_CENSUS,
	  .argument = "TIME",
	  .help = "--unreachable stops PID for no longer than that (1s), and not at all if more is foreseen" },
	{ .code = OPTION_BUDGET,
	  .name = "budget",
	  .uses = USED_BY_CENSUS,
	  .argument = "TIME",
	  .help = "CPU time that --unreachable, --by holder and --holders may take to follow pointers (60s), while PID "
	          "runs" },
	{ .code = OPTION_JSON, .name = "json", .uses = USED_BY_CENSUS, .help = "write what --census tells as JSON" },

	{ .group = "Sampling" },
	{ .code = 'r',
	  .name = "rate",
	  .uses = USED_BY_DOCTOR,
	  .argument = "SIZE",
	  .value = OPTION_VALUE_SIZE,
	  .help = "one sample per SIZE of allocated bytes, on average (512k); 1 records every allocation" },
	{ .code = OPTION_MAX_OVERHEAD,
	  .name = "max-overhead",
	  .uses = USED_BY_DOCTOR,
	  .argument = "PERCENT",
	  .help = "of the CPU time of PID, or of a fifth of a processor's if that is more, for sampling (1; no limit "
	          "with -r 1): while it takes more, there are fewer samples; 0: no limit" },
	{ .code = OPTION_MMAP,
	  .name = "mmap",
	  .uses = USED_BY_DOCTOR,
	  .help = "sample mmap, mremap and munmap, too; files apart" },
	{ .code = OPTION_PYTHON_ALLOCATORS,
	  .name = "python-allocators",
	  .uses = USED_BY_DOCTOR,
	  .argument = "MODE",
	  .value = OPTION_VALUE_WORDS,
	  .words = "auto on off",
	  .help = "sample CPython's objects of up to 512 bytes, too, which come from arenas of its own; auto "
	          "(default): "
	          "if --max-overhead is 15 or more, or 0" },
	{ .code = OPTION_HOOKS,
	  .name = "hooks",
	  .uses = USED_BY_DOCTOR,
	  .argument = "MODE",
	  .value = OPTION_VALUE_WORDS,
	  .words = "auto got entry",
	  .help = "got: change words through which modules call the allocator; entry: the first instructions of its "
	          "functions; auto (default): these where words cannot see the calls" },
	{ .code = OPTION_HOOK,
	  .name = "hook",
	  .uses = USED_BY_DOCTOR,
	  .argument = "POOL",
	  .help = "NAME=malloc, =malloc:1 (size in the second argument), =calloc, =realloc, =free: a function of the "
	          "program is an allocation function, too; may be repeated" },
	{ .code = OPTION_SEED, .name = "seed", .argument = "N", .help = "of the random numbers, for tests" },

	{ .group = "Recording" },
	{ .code = 'o',
	  .name = "output",
	  .uses = USED_BY_CENSUS | USED_BY_DETACH,
	  .argument = "FILE",
	  .value = OPTION_VALUE_FILE,
	  .help = "the dump; must not exist (memattach.COMM.PID.YYYYMMDD-HHMMSS.dump)" },
	{ .code = 'd',
	  .name = "duration",
	  .argument = "TIME",
	  .value = OPTION_VALUE_TIME,
	  .help = "detach after 30s, 5m, 1h (when told)" },
	{ .code = OPTION_LIVE,
	  .name = "live",
	  .uses = USED_BY_CENSUS,
	  .help = "show the live heap once a second meanwhile, as memanalyze --live does; its key q ends the session. "
	          "With --census: that, every 2 s or --every" },
	{ .code = OPTION_MAX_SIZE,
	  .name = "max-size",
	  .uses = USED_BY_DETACH | USED_BY_DOCTOR,
	  .argument = "SIZE",
	  .value = OPTION_VALUE_SIZE,
	  .help = "the dump never grows beyond, in memory and on disk (1G)" },
	{ .code = OPTION_RECEIPT,
	  .name = "receipt",
	  .uses = USED_BY_DETACH,
	  .argument = "FILE",
	  .value = OPTION_VALUE_FILE,
	  .help = "write what was done to the process as JSON" },
	{ .code = OPTION_HOLDERS,
	  .name = "holders",
	  .help = "at the end, also find out who holds the sampled blocks, by following the pointers of all memory of "
	          "PID (--budget)" },
	{ .code = OPTION_REPORT,
	  .name = "report",
	  .argument = "FILE",
	  .value = OPTION_VALUE_FILE,
	  .help = "write a report after the session, as memanalyze -o does; may be repeated" },
	{ .code = OPTION_NO_SYMBOLS,
	  .name = "no-symbols",
	  .uses = USED_BY_DETACH,
	  .help = "do not put the names of functions into the dump" },

	{ .group = "When to record" },
	{ .code = OPTION_WHEN,
	  .name = "when",
	  .argument = "CONDITION",
	  .help = "wait until it holds, without touching the process, then attach: 'rss>2G', 'private>2G' (without "
	          "files), "
	          "'growth>100M/1m', 'cgroup>90%' (of the limit of its memory cgroup), 'pressure>10%' (of the time, "
	          "tasks "
	          "waited for memory); if repeated, until one of them holds" },
	{ .code = OPTION_EVERY,
	  .name = "every",
	  .uses = USED_BY_CENSUS,
	  .argument = "TIME",
	  .value = OPTION_VALUE_TIME,
	  .help = "session after session of -d each, until the process ends; -o is a directory, and the names of "
	          "finished dumps go to standard output" },
	{ .code = OPTION_KEEP,
	  .name = "keep",
	  .argument = "N",
	  .help = "of the dumps of --every keep the latest N (24)" },

	{ .group = "Attaching" },
	{ .code = OPTION_DEADLINE,
	  .name = "deadline",
	  .uses = USED_BY_ALL,
	  .argument = "TIME",
	  .value = OPTION_VALUE_TIME,
	  .help = "how long to look for a thread at a safe point (500ms)" },
	{ .code = OPTION_LOADER,
	  .name = "loader",
	  .uses = USED_BY_DETACH | USED_BY_DOCTOR,
	  .argument = "WHOSE",
	  .value = OPTION_VALUE_WORDS,
	  .words = "auto target own",
	  .help = "target: the process's own loader takes the recorder in; own: memattach maps it; auto (default): "
	          "the second where the first cannot" },
	{ .code = OPTION_NO_CACHE,
	  .name = "no-cache",
	  .uses = USED_BY_DOCTOR,
	  .help = "neither use nor keep unwind tables in ~/.cache/memattach" },

	{ .group = "Messages and help" },
	{ .code = 'q', .name = "quiet", .uses = USED_BY_ALL, .help = "errors only" },
	{ .code = 'v', .name = "verbose", .uses = USED_BY_ALL, .help = "say more" },
	{ .code = 'h', .name = "help", .uses = USED_BY_ALL, .help = "show this help" },
	{ .code = 'V', .name = "version", .uses = USED_BY_ALL, .help = "show the version" },
	{ 0 },
};

const struct option_table memattach_options = {
	.program = "memattach",
	.before = "Usage: memattach [OPTION]... PID\n"
		  "  or:  memattach [OPTION]... -- COMMAND [ARGUMENT]...\n"
		  "  or:  memattach [OPTION]... --system -o DIRECTORY\n"
		  "  or:  memattach --detach PID\n"
		  "  or:  memattach --doctor PID\n"
		  "  or:  memattach --census [--json | --live] PID\n"
		  "Samples the heap of a running process until Ctrl-C, then leaves it as it was; or\n"
		  "that of a command from its main function to its end.\n"
		  "memanalyze shows what is in the dump.\n",
	.rows = rows,
	.operand = OPTION_VALUE_PID,
	.command = true,
	.after = "SIZE as 64k, 1.5M (binary); TIME as 250ms, 1m30s. Defaults are in parentheses.\n"
		 "\n"
		 "Examples:\n"
		 "  memattach --doctor 812                      can it be attached to?\n"
		 "  memattach -d 1m -o server.dump 812          record for a minute\n"
		 "  memattach -r 1 -d 10s 812                   record every allocation\n"
		 "\n"
		 "Exit status: 0 done, the process as before; 1 not attached, nothing changed;\n"
		 "2 detached but something had to stay (named); 3 detached, but the end of the\n"
		 "recording or a report could not be written; 64 wrong usage. With a command that\n"
		 "of the command, or 125 not started, 126 cannot be executed, 127 not found.\n",
};
