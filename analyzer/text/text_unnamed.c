/* SPDX-License-Identifier: MIT */
/* What would name functions that have no name, where they hold much. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "debug_info/debug_package.h"
#include "text/text.h"

#define ROWS_SEEN 500u
#define WORTH_SAYING 0.05 /* of the total */
#define IMAGES_SAID 20u   /* more of them cannot hold so much */

/* The image of the function that is shown first, if that has no name. */
static uint32_t unnamed_image(const struct report *r, const struct report_row *row)
{
	struct report_own own = report_own(r, row);
	uint64_t place = row->frames[own.frame];
	size_t n;

	return report_locations(r, place, &n)[own.location].function ? 0 : PLACE_IMAGE(place);
}

static void put_image(const struct text *t, const struct image *image, const char *package)
{
	char name[LINE_TEXT];

	text_module(image, name);
	fprintf(t->out, "Functions of %s that hold much have no names: %s%smemanalyze --debuginfod would name them.\n",
	        name, package, package[0] ? ", or " : "");
}

/* Those whose functions hold much, in the order of the images. */
static void put_images(const struct text *t, const double *shares)
{
	const struct images *images = &t->report->images;
	struct debug_package packages[IMAGES_SAID] = { 0 };
	uint32_t list[IMAGES_SAID];
	size_t count = 0;

	for (uint32_t i = 1; i < images->count && count < IMAGES_SAID; i++)
		if (shares[i] >= WORTH_SAYING)
			list[count++] = i;
	for (size_t i = 0; i < count; i++)
		packages[i].path = images->list[list[i]].path ? images->list[list[i]].path : "";
	if (t->report->options.package_lists && count)
		debug_packages_find(t->report->options.package_lists, packages, count);
	for (size_t i = 0; i < count; i++)
		put_image(t, &images->list[list[i]], packages[i].name);
}

void text_unnamed(const struct text *t)
{
	const struct report *r = t->report;
	/* Where nothing is live, the first sentence is about what was allocated. */
	enum report_figure f = r->total.sum[r->options.sort].samples ? r->options.sort : FIGURE_ALLOCATED_BYTES;
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
	put_images(t, shares);
}
