/* SPDX-License-Identifier: MIT */
/*
 * Dumps that are given together and show one session. Each later state of a session holds all that an earlier one
 * holds, so to merge both would count blocks twice.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

struct repeat {
	int of;    /* the latest dump of the same session, the first one of equal ones; itself: nothing is repeated */
	bool same; /* of the same moment, too: it is a copy */
};

/* Fills in one for each path. A file that cannot be opened repeats nothing. -ENOMEM. */
int repeats_find(char *const *paths, int count, struct repeat *repeats) WARN_UNUSED;
