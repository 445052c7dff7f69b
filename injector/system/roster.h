/* SPDX-License-Identifier: MIT */
/*
 * What a memattach --system leaves in the directory beside the dumps: how many were profiled, and who was not and why.
 * For memanalyze, and to be read. Lines of fields with tabs between them:
 *
 *   memattach-system 1
 *   host NAME
 *   time BEGAN WRITTEN       (seconds since 1970)
 *   sessions COUNT
 *   unseen COUNT PID NAME WHY
 *   more COUNT               (of which no names were kept)
 */
#pragma once

#include <time.h>

#include "base/err.h"
#include "system/unseen.h"

struct roster {
	char path[4096];
	time_t began;
	char *rows; /* that are in the file */
};

/* Chooses the name, in the directory; what killed ones have left half written there is removed. */
int roster_begin(struct roster *r, const char *directory, struct err *e) WARN_UNUSED;
/* Writes it whole, in the place of what it was before, if it is another or that is gone. */
int roster_write(struct roster *r, unsigned sessions, const struct unseen *u, struct err *e) WARN_UNUSED;
void roster_free(struct roster *r);
