/* SPDX-License-Identifier: MIT */
/* Sends bytes that claim to be a dump through the reader, the report and all of its forms. */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "live/live_screen.h"
#include "forms/outputs.h"
#include "report/report.h"
#include "symbols_walk.h"

enum { DAMAGE_NONE, DAMAGE_PARTIAL, DAMAGE_REFUSED };

static inline _Noreturn void damage_fail(const char *text)
{
	fprintf(stderr, "%s\n", text);
	abort();
}

static inline int damage_compare(struct report *report, struct dump *dump, const struct report_options *options,
                                 struct err *e)
{
	int r = report_init(report, options, e);

	if (!r)
		r = report_add_pair(report, dump, "old", dump, "new", e);
	return r ? r : report_finish(report, e);
}

static inline int damage_show(struct report *report, struct dump *dump, const struct report_options *options,
                              FILE *null)
{
	const struct output_style style = { .name = "damaged", .colour = true };
	struct err e;

	int r = options->diff ? damage_compare(report, dump, options, &e)
	                      : report_make(report, dump, "damaged", options, &e);
	if (r == -EINVAL && (options->at_ns || options->since_ns))
		return DAMAGE_REFUSED; /* a time that the dump does not reach */
	if (r)
		damage_fail(e.text);
	const struct output_format *format;
	for (size_t i = 0; (format = output_format_number(i)); i++)
		if (output_format_can(format, options) && output_format_write(format, report, &style, null))
			damage_fail("a form cannot be written");
	int result = report->whole ? DAMAGE_NONE : DAMAGE_PARTIAL;
	report_done(report);
	return result;
}

/* Two looks of the live view, and what it shows of them. */
static inline void damage_live(struct dump *dump, FILE *null)
{
	struct live_heap heap;
	struct live_names names;
	struct live_rows rows = { 0 };
	bool anew, left;

	live_names_init(&names, false);
	if (live_heap_init(&heap, NULL) || live_heap_look(&heap, dump, &anew))
		abort();
	heap.counters[DUMP_COUNTER_samples_taken]++; /* as if there were more now */
	if (live_heap_look(&heap, dump, &anew) || anew)
		abort();
	for (enum group_by by = BY_STACK; by <= BY_MODULE; by++) {
		live_names_set(&names, &heap, by);
		if (live_names_group(&names, &heap, SIZE_MAX, &left) ||
		    live_rows_make(&rows, &heap, &names, (enum live_sort)(by % LIVE_SORT_COUNT), 0.95))
			abort();
		const struct live_frame frame = {
			.heap = &heap, .rows = &rows, .names = &names, .choice.by = by, .confidence = 0.95
		};
		live_screen_write(&frame, 100, 50, true, null);
		live_screen_last(&frame, null);
		live_batch_write(&frame, 3, null);
		live_rows_done(&rows);
	}
	live_names_done(&names);
	live_heap_done(&heap);
}

/* A report with symbols starts a process, which takes longer than all the rest: one of so many has them. */
#define DAMAGE_SYMBOLS 64

/* The plain view of the dump, whose result it is, and one of the others, which turn decides. */
static inline int damage_report_as(const void *bytes, size_t size, size_t turn)
{
	static const struct report_options views[] = {
		{ .confidence = 0.95, .symbols = true },
		{ .confidence = 0.95, .symbols = true, .leaks = true, .full_names = true },
		{ .confidence = 0.8, .since_ns = 1, .at_ns = 5000000000, .sort = FIGURE_ALLOCATED_COUNT },
		{ .confidence = 0.99, .by = BY_FUNCTION, .sort = FIGURE_LIVE_COUNT },
		{ .confidence = 0.95, .by = BY_MODULE, .at_ns = UINT64_MAX },
		{ .confidence = 0.95, .by = BY_SIZE, .symbols = true, .filter = { .focus = "a", .hide = "b|e" } },
		{ .confidence = 0.95,
		  .by = BY_LIFETIME,
		  .sort = FIGURE_ALLOCATED_BYTES,
		  .filter = { .thread = "o", .size_low = 100, .older_ns = 1000 } },
		{ .confidence = 0.95,
		  .by = BY_LINE,
		  .symbols = true,
		  .filter = { .ignore = "x.*y", .show_from = "o" } },
		{ .confidence = 0.95, .timeline = 7 },
		{ .confidence = 0.95, .moments = 5, .top = 2, .times = true },
		{ .confidence = 0.95, .times = true },
		{ .confidence = 0.95, .moments = 9, .stack_threads = true, .filter = { .hide = "a" } },
		{ .confidence = 0.95, .timeline = 7, .filter = { .older_ns = 1000 } },
		{ .confidence = 0.95, .symbols = true, .verbose = true },
		{ .confidence = 0.95, .peak = true },
		{ .confidence = 0.95, .diff = true, .plan = 0.05 },
		{ .confidence = 0.95, .diff = true, .sort = FIGURE_ALLOCATED_BYTES, .top = 1 },
		{ .confidence = 0.95, .top = 1, .depth = 1 },
		{ .confidence = 0.95, .by = BY_FILE, .symbols = true, .full_names = true, .native = true },
		{ .confidence = 0.95, .by = BY_THREAD, .show_std = true, .verbose = true },
		{ .confidence = 0.95, .by = BY_TYPE, .top = 2 },
		{ .confidence = 0.95, .by = BY_HOLDER, .verbose = true, .at_ns = 5000000000 },
		{ .confidence = 0.9, .leaks = true, .age_ns = 1, .verbose = true },
		{ .confidence = 0.95, .since_ns = 1000000000, .by = BY_LINE, .symbols = true },
	};
	struct dump *dump = NULL;
	struct report report;
	struct err e;
	int result = DAMAGE_REFUSED;
	int fd = memfd_create("dump", MFD_CLOEXEC);
	FILE *null = fopen("/dev/null", "we");

	if (fd < 0 || !null || write(fd, bytes, size) != (ssize_t)size)
		abort();
	if (!dump_open_fd(fd, &dump, &e)) {
		struct dump_symbols *names;
		if (dump_symbols_read(dump, &names))
			abort();
		if (names && !symbols_walk(names, names->bytes))
			abort();
		free(names);
		struct report_options first = views[0], second = views[1 + turn % (sizeof views / sizeof views[0] - 1)];
		first.symbols = first.symbols && turn % DAMAGE_SYMBOLS == 0;
		second.symbols = second.symbols && turn % DAMAGE_SYMBOLS == 0;
		result = damage_show(&report, dump, &first, null);
		damage_show(&report, dump, &second, null);
		damage_live(dump, null);
		dump_close(dump);
	}
	fclose(null);
	close(fd);
	return result;
}

/* One of the other views after the other. */
static inline int damage_report(const void *bytes, size_t size)
{
	static size_t turn;

	return damage_report_as(bytes, size, turn++);
}
