/* SPDX-License-Identifier: MIT */
/*
 * What a report counts of samples by what their stacks are: with Python, with Java, through code that the process has
 * made itself, and those whose size was rounded up before the C library was asked.
 */
#pragma once

#include "dump_format.h"
#include "report/report.h"
#include "report/stack_places.h"

/* aligned_from: the place whose call asked for blocks with an alignment; 0: none did. */
void stack_counts_add(struct report *report, const struct dump_stack *stack, const struct stack_places *places,
                      uint64_t aligned_from);
