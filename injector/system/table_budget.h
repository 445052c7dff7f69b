/* SPDX-License-Identifier: MIT */
/* The budget of CPU time (cpu_budget.h) among the sessions of the table, by what they have used since the last time. */
#pragma once

#include "system/process_table.h"

/* part: of each processor; 0: no limit, nothing is changed. */
void table_budget_divide(struct process_table *t, double part, uint64_t now_ns);
