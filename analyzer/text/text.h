/* SPDX-License-Identifier: MIT */
/* What the files of the text report share. */
#pragma once

#include <stdio.h>

#include "report/folding.h"
#include "report/report.h"

#define LINE_TEXT 4096

struct text {
	const struct report *report;
	FILE *out;
	const char *bold, *dim, *warn, *plain; /* ANSI sequences or "" */
	size_t columns;                        /* that a line should have at most */
	size_t *labels;                        /* how many lines with a label there were; NULL: nobody counts */
	bool *gap;                             /* the next such line has a blank one above it; NULL: none has */
};

/* 1234567 -> "1,234,567" */
const char *text_grouped(double value, char buffer[40]);
/* Bytes with their unit, or blocks; negative ones with a minus. */
const char *text_amount(enum report_figure f, double value, char buffer[40]);
/* An interval without width: every call was recorded; or each that was seen, but not all were. */
#define TEXT_EXACT "exact"
#define TEXT_COUNTED "as counted"
/* One of these, or "low .. high". */
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
/* The frames of a stack in the order of the text: the line of Python leads, then come the native frames below it. */
const struct folded_frame *text_frame(const struct folded_stack *stack, size_t i);
/* "numpy (7 frames)"; returns how many columns it has. */
size_t text_folded(const struct folded_frame *frame, char out[LINE_TEXT]);
/* What the intervals of the rows that are shown promise together, behind them. */
void text_chosen(const struct text *t);
/* A line on what the allocator adds, if it is known. */
void text_slack(const struct text *t, const struct slack *slack);
/* That package, or the last component of a path, of Python what is below the directory of packages or of the program;
 * with its line if that is known; "" without a file. */
const char *text_source(const struct images *images, uint64_t place, const struct location *location,
                        char out[LINE_TEXT]);
/* The name of a module without what says nothing. */
void text_module(const struct image *image, char out[LINE_TEXT]);
/* Whether it is the program itself, of all sessions. */
bool text_is_program(const struct report *report, const struct image *image);
/* The last two components, which say which file it is. */
const char *text_short_path(const char *path);
void text_label(const struct text *t, const char *name);
void text_warning(const struct text *t, const char *what, const char *text);

/* What the figures are worth. */
bool text_all_measured(const struct report *report);
void text_trust(const struct text *t);
/* To be put behind a total: "   upper bound", or "". */
const char *text_trust_mark(const struct text *t, enum report_figure f);
/* A sentence on one reason, for JSON as well; it needs no text. */
const char *text_trust_reason(const struct report *report, enum trust_reason reason, char line[LINE_TEXT]);

/* The first line. */
void text_head(const struct text *t, const char *name);
/* What the figures lack: losses, what memattach noted, what of the files could not be read. Each cause once: what
 * text_trust has said is left out. */
void text_warnings(const struct text *t);
/* What memattach noted of the sessions: for one reason one sentence, with --verbose each note. */
void text_notes(const struct text *t);
/* … and of their stacks. */
void text_stack_notes(const struct text *t);
/* Which sessions these are, when a report is about several, or about a time. */
void text_sessions(const struct text *t);
/* All that is known of the sessions. */
void text_facts(const struct text *t);
/* The report in a few lines: what it says in one sentence, the totals, the rows, what was seen, what to do next. */
void text_verdict(const struct text *t);
/* That of --diff and --since. */
void text_growth_verdict(const struct text *t);
/* That of --leaks; first: the first row that it shows, NULL: none. */
void text_leaks_verdict(const struct text *t, const struct report_row *first);
/* What a row is called: a leak, growing, or neither, and why; and its lines in --leaks. */
void text_leak_called(const struct text *t, const struct report_row *row);
void text_leak_row(const struct text *t, const struct report_row *row);
/* A clause on who holds what a stack has: the innermost function that has a name, and some of its callers; false: there
 * is none. */
bool text_owner(const struct text *t, const char *before, const struct report_row *row);
/* The session's seconds until the time that is shown; 0: of several sessions, or not known. */
double text_seconds(const struct report *report);
/* The part that is live; "" if there is none, or in a damaged dump more is live than was allocated. */
const char *text_kept(double live, double allocated, char text[16]);
/* A line of a total: of the whole report, or of what is beside it. */
void text_total(const struct text *t, const char *name, const struct report_row *row, enum report_figure bytes);
void text_totals(const struct text *t);
/* Of a report on mappings of files (options.files): what it is about. Of one on memory: how much of files is mapped. */
void text_about_files(const struct text *t);
void text_beside_files(const struct text *t);
/* "live", "allocated"; of files both are "mapped". */
const char *text_live_word(const struct report *report);
const char *text_allocated_word(const struct report *report);
/* By how much RSS has grown, and what has it: one line, or two. False: it is not known. */
bool text_resident(const struct text *t);
/* The same as a table of both moments; only if it is known. */
void text_resident_facts(const struct text *t);
/* "shared memory +600 MiB, files +12.0 MiB": what of them grew; "" if neither did, or is known. */
const char *text_resident_growth(const struct report_memory *memory, char text[96]);
/* How large the blocks of a row are on average; "": not known. */
const char *text_block_size(const struct report *report, const struct report_row *row, char text[40]);
size_t text_holders(const struct text *t);
/* Functions below their callers, with inclusive sums. */
void text_tree(const struct text *t);
/* What it takes to follow mappings is told from so much of the CPU time on. */
#define TEXT_MAPPINGS_MIN 0.0005
/* The last lines: text_seen, with what the figures are worth if all are measured; what to do next. */
void text_next(const struct text *t, const char *name);
/* What would name functions that hold much, and have no name. */
void text_unnamed(const struct text *t);
/* What of the allocations there were samples of. */
void text_seen(const struct text *t);
/* The options that filter, as they are given; needs no text. */
void text_filter_options(const struct filter_options *options, char line[LINE_TEXT]);
/* How much of the figure that is sorted by a filter by names cannot assign; false: nothing. Needs no text. */
bool text_unassigned(const struct report *report, char line[LINE_TEXT]);
/* What the filter leaves out. */
void text_filter(const struct text *t);
/* The stacks, or the tables of what stands in them, or of threads, sizes and lifetimes; returns how many were shown. */
/* The functions that start the thread of a row, in one line. */
void text_startup(const struct text *t, const struct report_row *row);
size_t text_rows(const struct text *t);
size_t text_groups(const struct text *t);
void text_timeline(const struct text *t);
/* Who was not profiled, where a directory was given. */
void text_machine(const struct text *t);
size_t text_classes(const struct text *t);
