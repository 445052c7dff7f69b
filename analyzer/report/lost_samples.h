/* SPDX-License-Identifier: MIT */
/*
 * What samples weigh that had no room in the live table. The sums of a stack have every sample that was taken, so what
 * they have more than its records is that of samples without one: lost ones, and freed ones that the history has
 * dropped.
 */
#pragma once

#include "dump/dump_reader.h"
#include "stats/estimate.h"
#include "stats/trust.h"

/* Sums of bytes and of blocks of so many lost samples, which are this part of those without a record. frees, seen: what
 * the records of the stack have. */
void lost_samples_weigh(const struct dump_stack *stack, const struct free_tally *frees, double seen, double part,
                        double lost, struct estimate_sum sums[2]);
