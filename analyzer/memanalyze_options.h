/* SPDX-License-Identifier: MIT */
/* The table of memanalyze's options: --help, and what they are called. What they do: main.c, view_options.c. */
#pragma once

#include "base/option_table.h"

/* Those without a short form; from VIEW_FILES on they choose what a report is about (view_options.c). */
enum memanalyze_option {
	OPTION_FORMAT = OPTION_CODE_LONG,
	OPTION_DEPTH,
	OPTION_PLAN,
	OPTION_DEBUGINFOD,
	OPTION_LIVE_VIEW,
	OPTION_BATCH,

	VIEW_FILES = 2 * OPTION_CODE_LONG,
	VIEW_FOCUS,
	VIEW_IGNORE,
	VIEW_HIDE,
	VIEW_SHOW_FROM,
	VIEW_THREAD,
	VIEW_SIZE,
	VIEW_OLDER,
	VIEW_ALLOC_FN,
	VIEW_FULL_STACKS,
	VIEW_SHOW_STD,
	VIEW_NATIVE,
	VIEW_TREE,
	VIEW_PEAK,
	VIEW_TIMELINE,
};

extern const struct option_table memanalyze_options;
