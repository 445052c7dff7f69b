/* SPDX-License-Identifier: MIT */
/* Reads the records of one dump into the rows of a report. */
#pragma once

#include "report/report.h"

enum collect_side {
	COLLECT_ONLY, /* the report is about this dump, or it is merged with others */
	COLLECT_NEW,  /* compared with another session */
	COLLECT_OLD,
	COLLECT_LATER, /* compared with an earlier state of the same session */
	COLLECT_EARLIER,
};

/* kept: of a pair of one session, see struct sample_options; NULL otherwise. */
int collect_dump(struct report *report, struct dump *dump, enum collect_side side, struct map *kept) WARN_UNUSED;
