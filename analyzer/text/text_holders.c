/* SPDX-License-Identifier: MIT */
/* The rows of the text report of a heap: who holds it. */
#include <inttypes.h>
#include <string.h>

#include "output/short_name.h"
#include "base/size.h"
#include "text/text.h"
#include "report/unseen.h"

#define FRAMES_SHOWN 8

/* Where names stand: behind the figures if there is room for both, else below them. */
#define BESIDE_COLUMNS 140u
#define BESIDE_AT 81
#define BELOW_AT 5
#define SOURCE_MOST 44u
#define NAME_MOST 80u
#define NAME_LEAST 32u

struct layout {
	bool beside;
	int at; /* the column */
	size_t name, source;
};

static struct layout layout_of(const struct text *t)
{
	struct layout l = { .beside = t->columns >= BESIDE_COLUMNS };

	l.at = l.beside ? BESIDE_AT : BELOW_AT;
	size_t room = t->columns - (size_t)l.at - 3; /* "< ", and a space before the source */
	l.source = room / 3 < SOURCE_MOST ? room / 3 : SOURCE_MOST;
	l.name = room - l.source < NAME_MOST ? room - l.source : NAME_MOST;
	return l;
}

static void put_folded(const struct text *t, const struct layout *l, const struct folded_frame *f)
{
	char name[LINE_TEXT];

	text_folded(f, name);
	fprintf(t->out, "%*s%s%s %s%s\n", l->at, "", t->dim, f->package ? ">" : "<", name, t->plain);
}

/* What stands behind a name: the source, or else the module, but that of the program itself. */
static void name_source(const struct report *r, const struct folded_frame *f, size_t columns, char source[LINE_TEXT])
{
	const struct image *image = &r->images.list[PLACE_IMAGE(f->place)];
	char module[LINE_TEXT] = "";

	if (PLACE_IMAGE(f->place))
		text_module(image, module);
	text_source(&r->images, f->place, f->location, source);
	if (!source[0] && module[0] && f->location->function && !text_is_program(r, image))
		snprintf(source, LINE_TEXT, "(%.*s)", LINE_TEXT - 8, module);
	if (!r->options.full_names)
		short_name_cut(source, columns);
}

/* Returns its columns. */
static size_t name_of(const struct report *r, const struct folded_frame *f, size_t columns, char name[LINE_TEXT])
{
	char raw[LINE_TEXT], module[LINE_TEXT] = "";

	if (f->location->function)
		return text_name(r, f->location->function, columns, name);
	if (PLACE_IMAGE(f->place))
		text_module(&r->images.list[PLACE_IMAGE(f->place)], module);
	snprintf(raw, sizeof raw, "%.512s%s0x%" PRIx64, module, module[0] ? "+" : "", PLACE_OFFSET(f->place));
	return text_name(r, raw, columns, name);
}

static void put_frame(const struct text *t, const struct layout *l, const struct folded_frame *f, bool first)
{
	char name[LINE_TEXT], source[LINE_TEXT];
	size_t width = first ? l->name + 2 : l->name;

	if (f->name[0]) {
		put_folded(t, l, f);
		return;
	}
	size_t columns = name_of(t->report, f, width, name);
	name_source(t->report, f, l->source, source);
	if (!first || !l->beside)
		fprintf(t->out, "%*s", l->at, "");
	if (!first)
		fprintf(t->out, "%s< %s", t->dim, t->plain);
	fprintf(t->out, "%s%s%s", first ? t->bold : "", name, first ? t->plain : "");
	if (source[0])
		fprintf(t->out, "%*s %s%s%s", columns < width ? (int)(width - columns) : 0, "", t->dim, source,
		        t->plain);
	putc('\n', t->out);
}

/* The column of names is as wide as those of the row. */
static void fit_names(const struct text *t, const struct folded_stack *stack, size_t most, struct layout *l)
{
	size_t width = NAME_LEAST < l->name ? NAME_LEAST : l->name;
	char name[LINE_TEXT];

	for (size_t i = 0; i < stack->count && i < most; i++) {
		const struct folded_frame *f = text_frame(stack, i);
		size_t columns = f->name[0] ? 0 : name_of(t->report, f, l->name, name);
		width = columns > width ? columns : width;
	}
	l->name = width < l->name ? width : l->name;
}

static void put_frames(const struct text *t, const struct report_row *row)
{
	const struct report *r = t->report;
	struct layout l = layout_of(t);
	struct folded_stack stack = { 0 };
	size_t inner = report_inner(r, row), shown = 0;
	size_t most = r->options.depth ? r->options.depth : FRAMES_SHOWN;

	if (row->unknown || !row->frame_count) {
		fprintf(t->out, "%*s%s\n", l.beside ? 0 : l.at, "",
		        row->unknown ? "(stack not known)" : "(no frame is shown)");
		return;
	}
	if (folded_stack_make(&stack, r, row))
		fputs("(out of memory)\n", t->out);
	fit_names(t, &stack, most, &l);
	for (; shown < stack.count && shown < most && stack.list[shown].frame < inner; shown++)
		put_frame(t, &l, text_frame(&stack, shown), !shown);
	bool more = shown == most && (shown < stack.count ? stack.list[shown].frame : report_depth(r, row)) < inner;
	folded_stack_done(&stack);
	if (more) {
		fprintf(t->out, "%*s%s< ... (--verbose or --depth: more)%s\n", l.at, "", t->dim, t->plain);
		return;
	}
	if (inner < row->frame_count) {
		fprintf(t->out, "%*s%s<%s ", l.at, "", t->dim, t->plain);
		text_startup(t, row);
	} else if (row->flags) {
		fprintf(t->out, "%*s%s< ... (%s)%s\n", l.at, "", t->dim,
		        row->flags & DUMP_STACK_TRUNCATED ? "could not be walked further" : "deeper than is recorded",
		        t->plain);
	}
}

const char *text_block_size(const struct report *r, const struct report_row *row, char text[40])
{
	bool live = report_is_live(r->options.sort);
	double bytes = row->sum[live ? FIGURE_LIVE_BYTES : FIGURE_ALLOCATED_BYTES].value;
	double blocks = row->sum[live ? FIGURE_LIVE_COUNT : FIGURE_ALLOCATED_COUNT].value;

	text[0] = 0;
	return blocks > 0 ? size_format(bytes / blocks, text) : text;
}

static void put_holder(const struct text *t, size_t number, const struct report_row *row)
{
	const struct report *r = t->report;
	enum report_figure f = r->options.sort;
	enum report_figure companion = text_companion(f);
	struct estimate x = report_estimate(r, row, f);
	double allocated = row->sum[report_is_bytes(f) ? FIGURE_ALLOCATED_BYTES : FIGURE_ALLOCATED_COUNT].value;
	double live = row->sum[report_is_bytes(f) ? FIGURE_LIVE_BYTES : FIGURE_LIVE_COUNT].value;
	char value[40], range[96], share[16], kept[16], other[40], each[40], samples[40];

	fprintf(t->out, " %2zu %s%9s%s  %-20s %7s %7s %9s %9s %7s%s", number, t->bold, text_amount(f, x.value, value),
	        t->plain, text_interval(f, &x, range), text_percent(report_share(r, row, f), share),
	        text_kept(live, allocated, kept), text_amount(companion, row->sum[companion].value, other),
	        text_block_size(r, row, each), text_grouped((double)row->sum[f].samples, samples),
	        t->columns >= BESIDE_COLUMNS ? "  " : "\n");
	put_frames(t, row);
}

static void put_unseen_stacks(const struct text *t)
{
	struct unseen_stacks unseen = unseen_stacks(t->report, report_is_live(t->report->options.sort));
	char number[40], value[40], limit[40];

	fprintf(t->out, "    no sample in %s %s and all unseen stacks hold ",
	        text_grouped((double)unseen.stacks, number),
	        text_plural((double)unseen.stacks, "stack: it", "stacks: they"));
	if (unseen.estimate >= 1)
		fprintf(t->out, "about %s, ", size_format(unseen.estimate, value));
	fprintf(t->out, "less than %s together\n", size_format(unseen.high, limit));
}

size_t text_holders(const struct text *t)
{
	const struct report *r = t->report;
	enum report_figure f = r->options.sort;
	char level[40];
	size_t shown = 0, none = 0;
	bool folded = false;

	snprintf(level, sizeof level, "%g %% interval", 100 * r->options.confidence);
	fprintf(t->out, "\n%s, innermost function first\n    %s%9s  %-20s %7s %7s %9s %9s %7s%s\n",
	        r->options.files    ? "Mapped by"
	        : report_is_live(f) ? "Held by"
	                            : "Allocated by",
	        t->dim, report_is_live(f) ? text_live_word(r) : text_allocated_word(r), level, "share", "kept",
	        !report_is_bytes(f) ? "bytes"
	        : r->options.files  ? "mappings"
	                            : "blocks",
	        "each", "samples", t->plain);
	for (size_t i = 0; i < r->rows.count; i++) {
		const struct report_row *row = &r->rows.list[i];
		bool wanted = !r->options.top || shown < r->options.top;
		none += !row->sum[f].samples;
		if (!wanted || !row->sum[f].samples)
			continue;
		progress_at(r->options.progress, "writing", i, report_shown(r));
		report_want_symbols(r, i, r->options.top ? report_shown(r) : r->rows.count);
		put_holder(t, ++shown, row);
		struct report_own own = report_own(r, row);
		folded = folded || own.frame || own.location;
	}
	if (!shown)
		fputs("    none\n", t->out);
	text_chosen(t);
	if (folded)
		fputs("    frames of allocators, of the standard library and below Python and Java are folded: "
		      "--full-stacks "
		      "shows them\n",
		      t->out);
	if (none && r->largest_rate > 1)
		put_unseen_stacks(t);
	return shown;
}
