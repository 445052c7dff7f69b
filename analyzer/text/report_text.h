/* SPDX-License-Identifier: MIT */
/* The report for people. */
#pragma once

#include <stdio.h>

#include "report/report.h"

struct text_style {
	bool colour;    /* out understands ANSI colour sequences */
	size_t columns; /* of the terminal that out is; 0: it is none, and lines may be longer */
};

/* name: how the user called the dump. */
void report_text(const struct report *report, const char *name, FILE *out, struct text_style style);
