/* SPDX-License-Identifier: MIT */
#include "report_collapsed.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "frame_name.h"
#include "output_rows.h"

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

static int put_frames(FILE *out, const struct report *r, const struct report_row *row, size_t depth,
                      struct name_text *buffer, bool first)
{
	for (size_t i = depth; i-- > 0;) {
		size_t count;
		const struct location *list = report_locations(r, row->frames[i], &count);
		for (size_t k = count; k-- > 0; first = false) {
			const char *name = name_frame(buffer, r, row->frames[i], &list[k]);
			if (!name)
				return -ENOMEM;
			if (!first)
				putc(';', out);
			put_name(out, name);
			if (list[k].inlined)
				fputs("_[i]", out);
		}
	}
	return 0;
}

static int put_row(FILE *out, const struct output_rows *rows, size_t i, struct name_text *buffer)
{
	enum output_gap gap = output_rows_gap(rows, i);

	if (gap)
		fputs(output_gap_name(rows, gap), out);
	return gap == OUTPUT_UNKNOWN || gap == OUTPUT_MORE ? 0
	                                                   : put_frames(out, rows->report, output_rows_row(rows, i),
	                                                                output_rows_depth(rows, i), buffer, !gap);
}

int report_collapsed(const struct report *r, FILE *out)
{
	bool pair = report_compares(r);
	struct output_rows rows;
	struct name_text buffer = { 0 };
	int s = 0;

	output_rows_init(&rows, r);
	AUTO_FREE int64_t *now = output_rows_column(&rows, OUTPUT_NOW, r->options.sort);
	AUTO_FREE int64_t *old = pair ? output_rows_column(&rows, OUTPUT_OLD, r->options.sort) : NULL;
	if (!now || (pair && !old))
		return -ENOMEM;
	for (size_t i = 0; !s && i < rows.count; i++) {
		progress_at(r->options.progress, "writing", i, rows.count);
		report_want_symbols(r, i, rows.shown);
		if (!now[i] && !(pair && old[i]))
			continue;
		s = put_row(out, &rows, i, &buffer);
		if (pair)
			fprintf(out, " %" PRId64, old[i]);
		fprintf(out, " %" PRId64 "\n", now[i]);
	}
	name_done(&buffer);
	return s;
}
