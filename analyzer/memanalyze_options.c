/* SPDX-License-Identifier: MIT */
#include "memanalyze_options.h"

static const struct option_row rows[] = {
	{ .group = "Outputs" },
	{ .code = 'o',
	  .name = "output",
	  .argument = "FILE",
	  .value = OPTION_VALUE_FILE,
	  .help = "write to FILE, - is standard output; may be given several times" },
	{ .code = OPTION_FORMAT,
	  .name = "format",
	  .argument = "FORMAT",
	  .value = OPTION_VALUE_WORDS,
	  .words = "text json html pprof otlp collapsed speedscope dhat",
	  .help = "text, json, html, pprof, otlp, collapsed, speedscope or dhat; without it the name says it: .txt "
	          ".json .html .pb.gz .otlp .folded .collapsed .speedscope.json dhat.out.*" },
	{ .code = 'j', .name = "json", .help = "the same as --format=json" },

	{ .group = "What is shown" },
	{ .code = 'b',
	  .name = "by",
	  .argument = "WHAT",
	  .value = OPTION_VALUE_WORDS,
	  .words = "stack function file line module thread size lifetime residency type holder process program unit "
	           "container",
	  .help = "sum up by stack (default), function, file, line, module, thread, size, lifetime, residency, type, "
	          "holder; of several dumps: process (default for a directory), program, unit or container" },
	{ .code = VIEW_FILES,
	  .name = "mapped-files",
	  .help = "mappings of files (memattach --mmap) instead of memory" },
	{ .code = VIEW_TREE,
	  .name = "tree",
	  .help = "functions below their callers, with inclusive sums, in the text" },
	{ .code = 'a',
	  .name = "at",
	  .argument = "TIME",
	  .value = OPTION_VALUE_TIME,
	  .help = "the heap at this time after the attach (30s, 5m, 1h)" },
	{ .code = VIEW_PEAK, .name = "peak", .help = "the heap when most of it was live" },
	{ .code = VIEW_TIMELINE,
	  .name = "timeline",
	  .argument = "[N]",
	  .help = "live bytes at N moments (20) instead of stacks" },

	{ .code = OPTION_LIVE_VIEW,
	  .name = "live",
	  .help = "the heap while the session lasts, once a second on the terminal; of a directory its processes, as "
	          "top "
	          "has them" },
	{ .code = OPTION_BATCH,
	  .name = "batch",
	  .argument = "N",
	  .help = "the same N times as plain text, for scripts" },

	{ .group = "Growth and leaks" },
	{ .code = 'x', .name = "diff", .help = "compare two dumps: growth per stack" },
	{ .code = 'i',
	  .name = "since",
	  .argument = "TIME",
	  .value = OPTION_VALUE_TIME,
	  .help = "growth since this time after the attach" },
	{ .code = 'l', .name = "leaks", .help = "stacks whose old blocks become more and more" },
	{ .code = 'g',
	  .name = "age",
	  .argument = "TIME",
	  .value = OPTION_VALUE_TIME,
	  .help = "old is older than this (a third of the session)" },

	{ .group = "Filters; REGEX is an extended regular expression" },
	{ .code = VIEW_FOCUS,
	  .name = "focus",
	  .argument = "REGEX",
	  .help = "only stacks with a function, file or module that matches" },
	{ .code = VIEW_IGNORE, .name = "ignore", .argument = "REGEX", .help = "only stacks without one" },
	{ .code = VIEW_HIDE, .name = "hide", .argument = "REGEX", .help = "leave these frames out" },
	{ .code = VIEW_SHOW_FROM,
	  .name = "show-from",
	  .argument = "REGEX",
	  .help = "begin stacks at the outermost frame that matches" },
	{ .code = VIEW_THREAD,
	  .name = "thread",
	  .argument = "REGEX",
	  .help = "only what threads of this name, or number, have allocated" },
	{ .code = VIEW_SIZE,
	  .name = "size",
	  .argument = "SIZE",
	  .value = OPTION_VALUE_SIZE,
	  .help = "only blocks of this size, or from..below (1k..4k)" },
	{ .code = VIEW_OLDER,
	  .name = "older",
	  .argument = "TIME",
	  .value = OPTION_VALUE_TIME,
	  .help = "only blocks that were allocated so long ago, or longer" },
	{ .code = VIEW_ALLOC_FN,
	  .name = "alloc-fn",
	  .argument = "NAME",
	  .help = "take this function for a wrapper of an allocator; may be given several times" },
	{ .code = VIEW_FULL_STACKS,
	  .name = "full-stacks",
	  .help = "show all frames: those of allocators, standard libraries, start-up, and below Python, too" },
	{ .code = VIEW_SHOW_STD, .name = "show-std", .help = "the same as --full-stacks" },
	{ .code = VIEW_NATIVE,
	  .name = "native",
	  .help = "of stacks with Python frames, show the interpreter's own frames as well" },

	{ .group = "Rows" },
	{ .code = 'n', .name = "top", .argument = "N", .help = "show the first N rows, 0: all (20 in text, else all)" },
	{ .code = 's',
	  .name = "sort",
	  .argument = "FIGURE",
	  .value = OPTION_VALUE_WORDS,
	  .words = "live-bytes live-count allocated-bytes allocated-count",
	  .help = "sort by live-bytes (default), live-count, allocated-bytes or allocated-count" },
	{ .code = OPTION_DEPTH,
	  .name = "depth",
	  .argument = "N",
	  .help = "show N frames of each stack, 0: all (default)" },
	{ .code = 'F', .name = "full-names", .help = "do not shorten names in the text" },

	{ .group = "Certainty" },
	{ .code = 'c', .name = "confidence", .argument = "PERCENT", .help = "of the intervals (95)" },
	{ .code = OPTION_PLAN,
	  .name = "plan",
	  .argument = "PERCENT",
	  .help = "what it takes to know each figure to so many percent" },

	{ .group = "Names of functions" },
	{ .code = 'D',
	  .name = "debug-path",
	  .argument = "DIR",
	  .value = OPTION_VALUE_DIRECTORY,
	  .help = "look for programs and debug files here, too" },
	{ .code = OPTION_DEBUGINFOD,
	  .name = "debuginfod",
	  .help = "fetch debug files from the servers of DEBUGINFOD_URLS" },
	{ .code = 'S', .name = "no-symbols", .help = "show modules and offsets only" },

	{ .group = "Messages and help" },
	{ .code = 'v', .name = "verbose", .help = "also all that is known of the session and of each row" },
	{ .code = 'h', .name = "help", .help = "show this help" },
	{ .code = 'V', .name = "version", .help = "show the version" },
	{ 0 },
};

const struct option_table memanalyze_options = {
	.program = "memanalyze",
	.before = "Usage: memanalyze [OPTION]... [DUMP]...\n"
		  "  or:  memanalyze --diff [OPTION]... OLD NEW\n"
		  "Shows what dumps of memattach say about the heaps of their targets. Several\n"
		  "dumps are merged: stacks of the same code are one row, figures add up. Without\n"
		  "DUMP: the newest *.dump in the current directory.\n",
	.rows = rows,
	.operand = OPTION_VALUE_DUMP,
	.after = "SIZE as 64k, 1.5M (binary); TIME as 250ms, 1m30s. Defaults are in parentheses.\n"
		 "\n"
		 "Examples:\n"
		 "  memanalyze server.dump                      who holds the memory\n"
		 "  memanalyze --leaks --focus libfoo a.dump    what leaks below libfoo\n"
		 "  memanalyze -o heap.pb.gz server.dump        for go tool pprof\n"
		 "\n"
		 "Exit status: 0 all was read, 1 a dump is damaged and was read in part,\n"
		 "2 no dump could be read or an output not be written, 64 wrong usage.\n",
};
