/* SPDX-License-Identifier: MIT */
/*
 * Where a report goes, and in which form. The table of formats is in outputs.c: a new one is a row there, and a file
 * with its writer. Several outputs show one report, so that dumps are read once.
 *
 *   outputs_add for each -o, outputs_settle, outputs_open, (read the dumps), outputs_write, outputs_done
 */
#pragma once

#include "files/output_file.h"
#include "report/report.h"

/* How a writer shall write. */
struct output_style {
	const char *name; /* of the dump, as the user called it */
	bool colour;      /* the stream understands ANSI colour sequences */
	size_t columns;   /* of the terminal that it is; 0: it is none */
};

/* The contract of every writer: 0, or -ENOMEM; errors of the stream are the caller's business. */
typedef int output_writer(const struct report *report, const struct output_style *style, FILE *out);

struct output_format;

struct output {
	const char *path; /* as the user gave it; "-": standard output */
	const struct output_format *format;
	struct output_file file;
};

struct outputs {
	struct output *list;
	size_t count;
};

/* -EINVAL: there is none of that name. */
int output_format_find(const char *name, const struct output_format **format, struct err *e) WARN_UNUSED;
/* Each of them in turn, for who tries all; NULL after the last one. */
const struct output_format *output_format_number(size_t number);
/* Whether it can show what the options ask for. */
bool output_format_can(const struct output_format *format, const struct report_options *options);
int output_format_write(const struct output_format *format, const struct report *report,
                        const struct output_style *style, FILE *out) WARN_UNUSED;
/* One more, for -o. path must outlive it. -EINVAL, -ENOMEM. */
int outputs_add(struct outputs *outputs, const char *path, struct err *e) WARN_UNUSED;
/* Finds the format of each by its name; standard output alone if there is none. format: of --format, for all, or NULL.
 * -EINVAL also where a format cannot show what the options ask for: the text says which and what. */
int outputs_settle(struct outputs *outputs, const struct output_format *format, const struct report_options *options,
                   struct err *e) WARN_UNUSED;
/* Before the dumps are read: what cannot be written to is found at once. inputs: files that no output may replace. */
int outputs_open(struct outputs *outputs, char *const *inputs, int input_count, struct err *e) WARN_UNUSED;
/* After outputs_settle: what the outputs show of so many dumps beside their stacks, asked for or not. */
void outputs_ask(const struct outputs *outputs, struct report_options *options, int dump_count);
bool outputs_have_stdout(const struct outputs *outputs);
/* Writes all of them. top_given: report->options.top is what the user wants. After a failure the others are written all
 * the same, and the first error is told. */
int outputs_write(struct outputs *outputs, struct report *report, bool top_given, const struct output_style *style,
                  struct err *e) WARN_UNUSED;
/* What was not finished is removed. */
void outputs_done(struct outputs *outputs);
