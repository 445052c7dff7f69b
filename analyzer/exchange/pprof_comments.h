/* SPDX-License-Identifier: MIT */
/* What stands at the head of every report that pprof makes of the profile. */
#ifndef MEMATTACH_PPROF_COMMENTS_H
#define MEMATTACH_PPROF_COMMENTS_H

#include "exchange/pprof_tables.h"

/*
 * Which target, and how it was sampled; the totals with their intervals; how well a node is known. Then what the
 * figures lack, if they do.
 */
void pprof_put_comments(struct pprof *p);
/* The mean bytes between two samples, weighted by how long each interval lasted. */
double pprof_interval(const struct report *report);

#endif
