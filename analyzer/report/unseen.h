/* SPDX-License-Identifier: MIT */
/*
 * What a sample that nobody has seen would weigh. A stack may have one in every dump of its side, also in those that
 * show none of it: so the sets of a row are those of all dumps, and each side of a comparison has a rate of its own.
 */
#pragma once

#include "report/report.h"

/* The largest rate of a dump that was read; before: of the older one of a pair. */
void unseen_note_rate(struct report *report, uint64_t rate, bool before);
/* The rate of the older side. */
uint64_t unseen_rate_before(const struct report *report);
/* For every row, when all dumps are read: the weight of the next sample in each of its sets. */
void unseen_fill_rows(struct report *report);
/* The same for the sums over no row at all. */
void unseen_fill_total(struct report *report);

/*
 * What the stacks that show no sample of a figure hold together, those that are not known included. To say of each of
 * them what a stack chosen beforehand holds less than would be wrong: that they have no sample is why they were chosen.
 * A stack with one sample is as likely as one with none of which as much is unseen (Good 1953), so what is unseen of
 * those estimates it, with the variance of Robbins (1968).
 */
struct unseen_stacks {
	size_t stacks;         /* that are known, without a sample */
	double estimate, high; /* bytes; an upper end as all others */
};
struct unseen_stacks unseen_stacks(const struct report *report, bool live);
