/* SPDX-License-Identifier: MIT */
/* What is known of one level of calls at a place. */
#pragma once

#include <stdbool.h>

struct location {
	const char *function; /* as people write it; NULL unknown */
	const char *file;     /* NULL unknown */
	int line;             /* 0 unknown */
	bool inlined;         /* into the next location */
};
