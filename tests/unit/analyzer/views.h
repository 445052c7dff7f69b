/* SPDX-License-Identifier: MIT */
/* What the tests of reports share: dumps that are built to known figures, and what is shown of them. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <time.h>
#include <unistd.h>

#include "dump_builder.h"
#include "report/report.h"
#include "json/report_json.h"
#include "text/report_text.h"
#include "base/size.h"

#define SECOND 3000000000ull /* in stamps of dump_builder */
#define START 1000000ull
#define RATE 65536u

static const uint64_t frames_a[] = { DUMP_FRAME(1, 0x400100), DUMP_FRAME(1, 0x400200) };
static const uint64_t frames_b[] = { DUMP_FRAME(1, 0x400300), DUMP_FRAME(1, 0x400200) };

static inline struct dump_live_record *live_record(struct dump_builder *b, uint64_t i)
{
	return dump_builder_live(b, i);
}

static inline struct dump_history_record *history_record(struct dump_builder *b, uint64_t i)
{
	struct dump_region *region = dump_builder_region(b, DUMP_REGION_HISTORY);
	struct dump_history_block *blocks = dump_builder_at(b, region->offset);

	return &blocks[i / DUMP_HISTORY_RECORDS].records[i % DUMP_HISTORY_RECORDS];
}

/* A sample that is allocated at a second of the session, and freed at another; 0: it lives. */
static inline void sample(struct dump_builder *b, uint32_t stack, uint64_t size, uint32_t rate, double born,
                          double freed)
{
	struct dump_header *h = dump_builder_header(b);
	uint64_t taken = 0;

	dump_builder_sample(b, stack, size, rate, freed == 0);
	if (freed == 0) {
		live_record(b, b->live_used - 1)->stamp = START + (uint64_t)(born * (double)SECOND);
		return;
	}
	for (unsigned i = 0; i < DUMP_COUNTER_SHARDS; i++)
		taken += h->counters[i][DUMP_COUNTER_samples_freed];
	struct dump_history_record *record = history_record(b, taken - 1);
	record->allocated_stamp = START + (uint64_t)(born * (double)SECOND);
	record->freed_stamp = START + (uint64_t)(freed * (double)SECOND);
}

static inline struct dump *open_built(struct dump_builder *b)
{
	struct dump *dump;
	struct err e;
	char path[] = "/tmp/views.XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(dump_builder_write(b, path), 0);
	assert_int_equal(dump_open(path, &dump, &e), 0);
	unlink(path);
	return dump;
}

/* What tests look for in the text is in that which has everything, unless they ask for the short one. */
static bool brief;

static inline void make(struct report *r, struct dump_builder *b, struct report_options options)
{
	struct dump *dump = open_built(b);
	struct err e;

	if (options.confidence == 0)
		options.confidence = 0.95;
	options.verbose = !brief;
	assert_int_equal(report_make(r, dump, "x.dump", &options, &e), 0);
	dump_close(dump);
}

static inline char *text_of(const struct report *r)
{
	static char *text; /* gcc 12 takes a place in it for one in a variable that is gone (-Wdangling-pointer) */
	size_t size;
	FILE *out = open_memstream(&text, &size);

	report_text(r, "x.dump", out, (struct text_style){ 0 });
	fclose(out);
	return text;
}

static inline char *json_of(const struct report *r)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(report_json(r, out), 0);
	fclose(out);
	return text;
}

static inline void assert_says(char *text, const char *what)
{
	if (!strstr(text, what))
		fail_msg("no \"%s\" in:\n%s", what, text);
	free(text);
}

static inline void assert_says_not(char *text, const char *what)
{
	if (strstr(text, what))
		fail_msg("\"%s\" in:\n%s", what, text);
	free(text);
}

static inline const struct report_row *row_with(const struct report *r, uint64_t address)
{
	for (size_t i = 0; i < r->rows.count; i++)
		if (r->rows.list[i].frame_count && PLACE_OFFSET(r->rows.list[i].frames[0]) == address)
			return &r->rows.list[i];
	fail_msg("no row of %llx", (unsigned long long)address);
	return NULL;
}

/* The row whose frames are this text, as a test writes them. */
static inline const struct report_row *row_of_text(const struct report *r, const char *stack,
                                                   char *(*text)(const struct report *r, const struct report_row *row))
{
	for (size_t i = 0; i < r->rows.count; i++)
		if (!strcmp(text(r, &r->rows.list[i]), stack))
			return &r->rows.list[i];
	for (size_t i = 0; i < r->rows.count; i++)
		print_error("%s\n", text(r, &r->rows.list[i]));
	fail_msg("no row %s", stack);
	return NULL;
}

static inline void compare(struct report *r, struct dump_builder *old, struct dump_builder *new)
{
	struct report_options options = { .confidence = 0.95, .diff = true, .verbose = true };
	struct dump *a = open_built(old);
	struct dump *b = open_built(new);
	struct err e;

	assert_int_equal(report_init(r, &options, &e), 0);
	assert_int_equal(report_add_pair(r, a, "old", b, "new", &e), 0);
	assert_int_equal(report_finish(r, &e), 0);
	dump_close(a);
	dump_close(b);
}
