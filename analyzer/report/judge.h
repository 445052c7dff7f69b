/* SPDX-License-Identifier: MIT */
/* Collects what tells of the worth of a report's figures, and applies what stats/trust.h decides from it to the rows.
 */
#pragma once

#include "report/report.h"

/* Of each dump: what its live blocks need of the memory, and how many GOT entries were hooked. */
void judge_session(struct report *report, const struct recorded_session *session, const struct estimate_sum *fit,
                   uint64_t got_entries);
/* Of each note, also those that are not kept. */
void judge_note(struct report *report, uint32_t kind);
/* When the rest of the report is there, but for the tests. */
void judge(struct report *report);
/* After the tests: where frees are missed, no growth of live figures is called one; nor is what a collector of garbage
 * may yet free called a leak. */
void judge_row(const struct report *report, struct report_row *row);
