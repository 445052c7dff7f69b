/* SPDX-License-Identifier: MIT */
/*
 * What a report states, and how often it is true: simulated sessions with known heaps, through the whole report. Each
 * statement is a row of the table that `statements RUNS SEED` prints; bench/coverage runs it, the suite with few runs.
 */
#pragma once

#include "views.h"

#include "heap_simulation.h"

/* Kinds of rows: an interval, which is to hold in 95 %; a false alarm, of which 5 % are allowed; power, which is shown.
 */
enum statement_kind { HOLDS, FALSE_ALARM, POWER };

struct statement {
	const char *name;
	enum statement_kind kind;
	double least; /* of power: what the suite asks for */
	unsigned true_of, of;
};

/* The row of that name; a new one if there is none. */
struct statement *statement(const char *name, enum statement_kind kind, double least);
static inline void count_statement(const char *name, enum statement_kind kind, double least, bool yes)
{
	struct statement *s = statement(name, kind, least);

	s->of++;
	s->true_of += yes;
}

static inline void holds(const char *name, struct estimate x, double truth)
{
	count_statement(name, HOLDS, 0, x.low <= truth * (1 + 1e-9) + 1e-9 && truth * (1 - 1e-9) - 1e-9 <= x.high);
}

/* A dump with room for so many live samples and blocks of history, and a module in which stacks are. */
void session_begin(struct dump_builder *b, uint64_t rate, uint64_t live, uint64_t history);
/* The i-th stack. */
uint32_t session_stack(struct dump_builder *b, unsigned i);
/* The index of a row's stack, as session_stack had it; -1: it is not known. */
int stack_of_row(const struct report_row *row);
/* Samples blocks of one size, all of which live. */
void session_blocks(struct dump_builder *b, struct random_source *random, uint32_t stack, uint64_t size,
                    uint64_t blocks, uint64_t rate);
/* A report of one dump or more, in memory. */
void session_report(struct report *r, struct dump_builder *dumps, size_t count, struct report_options options);

void state_comparisons(unsigned runs, struct random_source *random);
void state_leaks(unsigned runs, struct random_source *random);
void state_figures(unsigned runs, struct random_source *random);
void state_rows(unsigned runs, struct random_source *random);
void state_live(unsigned runs, struct random_source *random);
void state_views(unsigned runs, struct random_source *random);
