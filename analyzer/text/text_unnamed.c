/* SPDX-License-Identifier: MIT */
/* What would name functions that have no name, where they hold much. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "debug_info/debug_package.h"
#include "text/text.h"

#define ROWS_SEEN 500u
#define WORTH_SAYING 0.05 /* of the total */

/* The image of the function that is shown first, if that has no name. */
static uint32_t unnamed_image(const struct report *r, const struct report_row *row)
{
	struct report_own own = report_own(r, row);
	uint64_t place = row->frames[own.frame];
	size_t n;

	return report_locations(r, place, &n)[own.location].function ? 0 : PLACE_IMAGE(place);
}

static void put_image(const struct text *t, const struct image *image)
{
	char name[LINE_TEXT], package[DEBUG_PACKAGE_NAME];
	const char *const lists = t->report->options.package_lists;
	bool found = lists && image->path && debug_package_find(lists, image->path, package);

	text_module(image, name);
	fprintf(t->out, "Functions of %s that hold much have no names: %s%smemanalyze --debuginfod would name them.\n",
	        name, found ? package : "", found ? ", or " : "");
}

void text_unnamed(const struct text *t)
{
	const struct report *r = t->report;
	enum report_figure f = r->options.sort;
	AUTO_FREE double *shares = calloc(r->images.count + 1, sizeof *shares);

	if (!shares || !r->symbols || report_compares(r) || r->options.leaks)
		return;
	for (size_t i = 0; i < r->rows.count && i < ROWS_SEEN; i++) {
		const struct report_row *row = &r->rows.list[i];
		if (!row->sum[f].samples || !row->frame_count)
			continue;
		report_want_symbols(r, i, r->rows.count);
		shares[unnamed_image(r, row)] += report_share(r, row, f);
	}
	for (uint32_t i = 1; i < r->images.count; i++)
		if (shares[i] >= WORTH_SAYING)
			put_image(t, &r->images.list[i]);
}
