/* SPDX-License-Identifier: MIT */
/*
 * The HTML report of a folder of dumps: beside the report of all of them together a table of its processes, programs,
 * units and containers, and reports of single processes, and of programs of which several processes ran, that the page
 * shows when they are chosen. All figures of the table are those of --by process, program, unit and container.
 *
 * The reports are made first, the smallest first, so that what one leaves over is there for those with more stacks.
 * Number N has the elements head<N>, frames<N> and nodes<N>, as the report of all has head, frames and nodes. Then
 * comes the element "machine", an object:
 *
 *   tables: for process, program, unit and container, each
 *     rows: the largest first, each a list: name, number of sessions, growth of private memory, number of its report
 *           (null: none), of a process the numbers of its program, unit and container, and of each figure: samples,
 *           estimate, the ends of the interval
 *     more: how many rows are left out
 *   notProfiled: each count, name, reason; notListed: how many such lines are left out
 */
#pragma once

#include "report/report.h"

#define HTML_MACHINE_ROWS 2000u /* of each kind; fewer where names are long */
#define HTML_MACHINE_PARTS 400u /* reports of single processes and programs */
#define HTML_MACHINE_UNSEEN 200u
#define HTML_MACHINE_BYTES 6000000u /* of all of this */

/* The text is to be freed. r: made with options.processes. -ENOMEM. */
int html_machine(const struct report *r, char **text, size_t *bytes) WARN_UNUSED;
