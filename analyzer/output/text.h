/* SPDX-License-Identifier: MIT */
/* What the files of the text report share. */
#ifndef MEMATTACH_TEXT_H
#define MEMATTACH_TEXT_H

#include <stdio.h>

#include "report.h"

#define LINE_TEXT 4096

struct text {
	const struct report *report;
	FILE *out;
	const char *bold, *dim, *warn, *plain; /* ANSI sequences or "" */
};

/* 1234567 -> "1,234,567" */
const char *text_grouped(double value, char buffer[40]);
/* Bytes with their unit, or blocks; negative ones with a minus. */
const char *text_amount(enum report_figure f, double value, char buffer[40]);
/* "exact", or "low .. high" */
const char *text_interval(enum report_figure f, const struct estimate *x, char buffer[96]);
const char *text_percent(double share, char buffer[16]);
/* The word that goes with a number as it is printed. */
const char *text_plural(double n, const char *one, const char *many);
/* " block", " blocks", or nothing for bytes. */
const char *text_unit(enum report_figure f, double value);
/* "live bytes" … */
const char *text_title(enum report_figure f);
/* The figure that goes with the one that is sorted by: blocks with bytes. */
enum report_figure text_companion(enum report_figure f);
const char *text_samples(uint64_t n);
/* A name in so many columns, unless full names are wanted; returns how many it has. */
size_t text_name(const struct report *report, const char *name, size_t columns, char out[LINE_TEXT]);
/* A line on what the allocator adds, if it is known. */
void text_slack(const struct text *t, const struct slack *slack);
void text_label(const struct text *t, const char *name);
void text_warning(const struct text *t, const char *what, const char *text);

/* What the figures are worth. */
void text_trust(const struct text *t);
/* To be put behind a total: "   upper bound", or "". */
const char *text_trust_mark(const struct text *t, enum report_figure f);
/* A sentence on one reason, for JSON as well; it needs no text. */
const char *text_trust_reason(const struct report *report, enum trust_reason reason, char line[LINE_TEXT]);

/* Which sessions these are, the samples, what the figures lack. */
void text_head(const struct text *t);
/* What the filter leaves out. */
void text_filter(const struct text *t);
/* The stacks, or the tables of what stands in them, or of threads, sizes and lifetimes; returns how many were shown. */
size_t text_rows(const struct text *t);
size_t text_groups(const struct text *t);
void text_timeline(const struct text *t);
size_t text_classes(const struct text *t);

#endif
