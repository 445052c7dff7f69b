/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "census/census_text.h"

#define COLUMNS 80u
#define INDENT 33u

/* " > what", in the next line where it does not fit any more. */
static void append_step(const struct printing *p, char line[512], const char *what)
{
	char step[160];

	snprintf(step, sizeof step, " > %s", what);
	if (strlen(line) > INDENT && strlen(line) + strlen(step) > COLUMNS) {
		census_put_line(p, line);
		snprintf(line, 512, "%*s", (int)INDENT - 1, "");
	}
	snprintf(line + strlen(line), 512 - strlen(line), "%s", step);
}

static void put_path(const struct printing *p, const struct holder *h)
{
	char line[512], what[160];

	snprintf(line, sizeof line, "%*s", (int)INDENT - 1, "");
	for (unsigned i = 0; i < h->step_count; i++) {
		const struct holder_step *s = &h->steps[i];
		if (s->blocks > 1)
			snprintf(what, sizeof what, "%s, %" PRIu64 " times", s->what, s->blocks);
		append_step(p, line, s->blocks > 1 ? what : s->what);
	}
	if (h->below) {
		snprintf(what, sizeof what, "%" PRIu64 " block%s", h->below, h->below == 1 ? "" : "s");
		append_step(p, line, what);
	}
	census_put_line(p, line);
}

static const struct holder *holder_before(const struct printing *p, const char *name)
{
	const struct holders *old = p->view->before ? &p->view->before->holders : NULL;
	uint32_t number;

	return old && old->known && string_table_find(&old->names, name, &number) ? &old->list[number] : NULL;
}

void census_put_holders(const struct printing *p, unsigned rows)
{
	const struct holders *h = &p->census->holders;
	char bytes[SIZE_TEXT], change[SIZE_TEXT + 1], line[512];

	if (!h->known) {
		if (p->view->by == CENSUS_BY_HOLDER)
			fprintf(p->out, "\nHeld by: not known, %s.\n", p->census->lost.why);
		return;
	}
	fprintf(p->out, "\n%11s %7s %11s%s  by holder (one path of possibly several)\n", "held", "", "blocks",
	        p->view->before ? "       change" : "");
	for (uint32_t i = 0; i < rows && i < h->names.count && h->list[h->order[i]].blocks; i++) {
		const char *name = h->names.list[h->order[i]];
		const struct holder *row = &h->list[h->order[i]], *old = holder_before(p, name);
		int n = snprintf(line, sizeof line, "%11s %5.1f %% %11" PRIu64, size_format((double)row->bytes, bytes),
		                 h->bytes ? 100 * (double)row->bytes / (double)h->bytes : 0, row->blocks);
		if (p->view->before)
			n += snprintf(line + n, sizeof line - (size_t)n, " %12s",
			              size_format_change((double)row->bytes - (old ? (double)old->bytes : 0), change));
		snprintf(line + n, sizeof line - (size_t)n, "  %s", name);
		census_put_line(p, line);
		if (row->step_count)
			put_path(p, row);
	}
}
