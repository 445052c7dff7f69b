/* SPDX-License-Identifier: MIT */
#include "html/html_leaks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "html/html_capture.h"
#include "html/html_data.h"

#define NUMBERS_BYTES 200u
#define DROPPED "Some of the history was dropped: the test takes it to be like the rest."

static void put_estimate(struct json *j, struct estimate x)
{
	json_estimate(j, NULL, round(x.value));
	json_estimate(j, NULL, floor(x.low));
	json_estimate(j, NULL, ceil(x.high));
}

/* Who holds its old blocks, as the first sentence of a report says it. To be freed. */
static char *name_holder(const struct report *r, const struct report_row *row)
{
	struct html_capture c;

	if (!html_capture_begin(&c, r))
		return NULL;
	if (row->unknown || !row->frame_count || !text_owner(&c.put, "", row))
		fputs(row->unknown ? "(stack not known)" : "(no function has a name)", c.out);
	return html_capture_end(&c);
}

static char *name_verdict(const struct report *r, const struct report_row *row)
{
	struct html_capture c;

	if (!html_capture_begin(&c, r))
		return NULL;
	text_leak_called(&c.put, row);
	return html_capture_end(&c);
}

/* Returns 1 if there is no room. */
static int put_row(struct json *j, const struct report *r, const struct report_row *row, size_t *bytes)
{
	AUTO_FREE char *holder = name_holder(r, row), *verdict = name_verdict(r, row);
	struct name_text buffer = { 0 };

	if (!holder || !verdict)
		return -ENOMEM;
	const char *name = holder + strspn(holder, ";\n"); /* it is made to follow a clause */
	size_t used = NUMBERS_BYTES + html_name_bytes(name) + strlen(verdict);
	if (used > *bytes)
		return 1;
	*bytes -= used;
	json_array_line(j, NULL);
	int s = html_put_name(j, name, &buffer);
	json_string(j, NULL, verdict);
	json_unsigned(j, NULL, row->grown ? 2 : row->grows);
	put_estimate(j, report_interval(r, &row->leak->bytes, FIGURE_LIVE_BYTES));
	put_estimate(j, report_interval(r, &row->leak->count, FIGURE_LIVE_COUNT));
	put_estimate(j, report_leak_rate(r, row));
	json_unsigned(j, NULL, row->leak->count.samples);
	json_array_end(j);
	frame_name_done(&buffer);
	return s;
}

static int put_verdict(struct json *j, const struct report *r, const struct report_row *first)
{
	struct html_capture c;

	if (!html_capture_begin(&c, r))
		return -ENOMEM;
	text_leaks_verdict(&c.put, first);
	return html_capture_put(&c, "verdict", j);
}

int html_leaks(const struct report *r, size_t bytes, struct json *j)
{
	size_t count = 0, n = 0;

	if (!r->rows.leaks)
		return 0;
	AUTO_FREE uint32_t *list = report_leaks(r, &count);
	if (!list)
		return -ENOMEM;
	json_object(j, "leaks");
	int s = put_verdict(j, r, count ? &r->rows.list[list[0]] : NULL);
	json_string(j, "note", r->total.leak->dropped ? DROPPED : "");
	json_number(j, "age", (double)r->age_ns / 1e9);
	json_array(j, "rows");
	for (; !s && n < count && n < HTML_LEAK_ROWS; n += !s)
		s = put_row(j, r, &r->rows.list[list[n]], &bytes);
	json_array_end(j);
	json_unsigned(j, "more", count - n);
	json_object_end(j);
	return s < 0 ? s : 0;
}

/* Looks for some rows in the lists of the tree. */
struct search {
	const struct html_tree *tree;
	uint32_t *wanted; /* of each row: its number among the wanted ones + 1; 0: none */
	uint32_t *entries;
	uint32_t entry;
};

static void look(void *arg, uint32_t rows)
{
	struct search *s = arg;

	for (; rows; rows = s->tree->next_row[rows - 1])
		if (s->wanted[rows - 1])
			s->entries[s->wanted[rows - 1] - 1] = s->entry;
	s->entry++;
}

int html_leak_entries(const struct html_tree *t, struct json *j)
{
	const struct report *r = t->report;
	uint32_t entries[HTML_LEAK_ROWS] = { 0 };
	size_t count = 0;

	if (!r->rows.leaks)
		return 0;
	AUTO_FREE uint32_t *list = report_leaks(r, &count), *wanted = calloc(r->rows.count + 1, sizeof *wanted);
	if (!list || !wanted)
		return -ENOMEM;
	count = count < HTML_LEAK_ROWS ? count : HTML_LEAK_ROWS;
	for (uint32_t i = 0; i < count; i++)
		wanted[list[i]] = i + 1;
	struct search search = { t, wanted, entries, 0 };
	html_data_each(t, look, &search);
	json_array_line(j, "leakEntries");
	for (uint32_t i = 0; i < count; i++)
		json_unsigned(j, NULL, entries[i]);
	json_array_end(j);
	return 0;
}
