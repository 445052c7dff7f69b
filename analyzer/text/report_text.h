/* SPDX-License-Identifier: MIT */
/* The report for people. */
#ifndef MEMATTACH_REPORT_TEXT_H
#define MEMATTACH_REPORT_TEXT_H

#include <stdio.h>

#include "report/report.h"

/* colour: whether out understands ANSI colour sequences. name: how the user called the dump. */
void report_text(const struct report *report, const char *name, FILE *out, bool colour);

#endif
