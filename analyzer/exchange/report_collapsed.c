/* SPDX-License-Identifier: MIT */
#include "exchange/report_collapsed.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/folding.h"
#include "output/frame_name.h"
#include "output/output_rows.h"

/* Readers take a number at the end of a line, after a blank, for a figure. */
static bool ends_in_number(const char *name)
{
	size_t n = strlen(name);

	while (n && (isdigit((unsigned char)name[n - 1]) || name[n - 1] == '.'))
		n--;
	return name[n] && (!n || name[n - 1] == ' ');
}

static void put_name(FILE *out, const char *name)
{
	const char *last = ends_in_number(name) ? strrchr(name, ' ') : NULL;

	for (const char *s = name; *s; s++)
		putc(*s == ';' ? ':' : s == last ? '_' : *s, out);
}

struct collapsed {
	FILE *out;
	struct output_rows rows;
	struct folded_stack stack;
	struct name_text buffer;
};

/* The outermost frame first. */
static int put_frames(struct collapsed *c, const struct report_row *row, bool first)
{
	int s = folded_stack_make(&c->stack, c->rows.report, row);

	for (size_t i = s ? 0 : c->stack.count; i-- > 0; first = false) {
		const struct folded_frame *f = &c->stack.list[i];
		const char *name = f->name[0] ? f->name
		                              : frame_name_text(&c->buffer, c->rows.report, f->place, f->location);
		if (!name)
			return -ENOMEM;
		if (!first)
			putc(';', c->out);
		put_name(c->out, name);
		if (!f->name[0] && f->location->inlined)
			fputs("_[i]", c->out);
	}
	return s;
}

static int put_row(struct collapsed *c, size_t i)
{
	enum output_gap gap = output_rows_gap(&c->rows, i);
	const struct report_row *row = output_rows_row(&c->rows, i);

	if (gap)
		fputs(output_gap_name(&c->rows, gap), c->out);
	return row && row->frame_count ? put_frames(c, row, !gap) : 0;
}

int report_collapsed(const struct report *r, FILE *out)
{
	bool pair = report_compares(r);
	struct collapsed c = { .out = out };
	int s = 0;

	output_rows_init(&c.rows, r);
	AUTO_FREE int64_t *now = output_rows_column(&c.rows, OUTPUT_NOW, r->options.sort);
	AUTO_FREE int64_t *old = pair ? output_rows_column(&c.rows, OUTPUT_OLD, r->options.sort) : NULL;
	if (!now || (pair && !old))
		return -ENOMEM;
	for (size_t i = 0; !s && i < c.rows.count; i++) {
		progress_at(r->options.progress, "writing", i, c.rows.count);
		report_want_symbols(r, i, c.rows.shown);
		if (!now[i] && !(pair && old[i]))
			continue;
		s = put_row(&c, i);
		if (pair)
			fprintf(out, " %" PRId64, old[i]);
		fprintf(out, " %" PRId64 "\n", now[i]);
	}
	folded_stack_done(&c.stack);
	frame_name_done(&c.buffer);
	return s;
}
