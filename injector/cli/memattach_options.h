/* SPDX-License-Identifier: MIT */
/* The table of memattach's options: --help, and what they are called. What they do: options.c. */
#pragma once

#include "base/option_table.h"

/* option_row.uses; a session heeds all but what goes with --census. */
#define USED_BY_DETACH 1u
#define USED_BY_DOCTOR 2u
#define USED_BY_CENSUS 4u
#define USED_BY_ALL (USED_BY_DETACH | USED_BY_DOCTOR | USED_BY_CENSUS)

/* Those without a short form. */
enum memattach_option {
	OPTION_MAX_SIZE = OPTION_CODE_LONG,
	OPTION_MAX_OVERHEAD,
	OPTION_RECEIPT,
	OPTION_REPORT,
	OPTION_WHEN,
	OPTION_EVERY,
	OPTION_KEEP,
	OPTION_NAME,
	OPTION_CGROUP,
	OPTION_UNIT,
	OPTION_ALL,
	OPTION_SYSTEM,
	OPTION_CHILDREN,
	OPTION_DETACH,
	OPTION_DOCTOR,
	OPTION_CENSUS,
	OPTION_FOR,
	OPTION_BY,
	OPTION_UNREACHABLE,
	OPTION_CLONE,
	OPTION_FREEZE,
	OPTION_HOLDERS,
	OPTION_MAX_STOP,
	OPTION_BUDGET,
	OPTION_JSON,
	OPTION_MMAP,
	OPTION_PYTHON_ALLOCATORS,
	OPTION_HOOKS,
	OPTION_HOOK,
	OPTION_SEED,
	OPTION_DEADLINE,
	OPTION_LOADER,
	OPTION_NO_CACHE,
	OPTION_NO_SYMBOLS,
	OPTION_LIVE,
};

extern const struct option_table memattach_options;
