/* SPDX-License-Identifier: MIT */
/* The stacks of the text report. */
#include <inttypes.h>
#include <string.h>

#include "base/printable.h"
#include "output/short_name.h"
#include "base/size.h"
#include "text/text.h"
#include "base/line_width.h"

/* Indentation 8, function, 2, source, 2, module, " inlined": 120 of 120 columns. */
#define FUNCTION_COLUMNS(t) ((t)->columns / 2 - 10)
#define SOURCE_COLUMNS(t) ((t)->columns / 4 - 2)
#define MODULE_COLUMNS 22
#define MODULE_BESIDE 100u /* with less columns it stands only where there is no source */

/* One line below a stack, ready to be aligned. */
struct line {
	char function[LINE_TEXT], source[LINE_TEXT], module[LINE_TEXT];
	size_t function_columns, source_columns;
	bool inlined;
};

/* Of Python below the directory of packages, or of the program; else its last component, or two if there is room. */
static const char *short_path(const struct text *t, uint64_t place, const char *path)
{
	const struct report *r = t->report;
	const char *slash = strrchr(path, '/');

	if (source_places_have(&r->images, place))
		return r->options.full_names ? path : source_places_short(&r->images.sources, path);
	return slash && !r->options.full_names && t->columns < MODULE_BESIDE ? slash + 1 : text_short_path(path);
}

const struct folded_frame *text_frame(const struct folded_stack *stack, size_t i)
{
	return &stack->list[i < 2 && stack->list[0].package ? 1 - i : i];
}

size_t text_folded(const struct folded_frame *f, char out[LINE_TEXT])
{
	snprintf(out, LINE_TEXT, "%s (%u %s)", f->name, f->count, text_plural(f->count, "frame", "frames"));
	printable_copy(out, out, LINE_TEXT);
	return line_width_of(out);
}

size_t text_name(const struct report *r, const char *name, size_t columns, char out[LINE_TEXT])
{
	char clean[LINE_TEXT];
	size_t have = printable_copy(name, clean, sizeof clean);

	if (r->options.full_names) {
		memcpy(out, clean, sizeof clean);
		return have;
	}
	short_name(clean, columns, out, LINE_TEXT);
	printable_copy(out, out, LINE_TEXT); /* a very long one may end in half a character */
	return short_name_cut(out, columns);
}

static void make_line(const struct text *t, uint64_t place, const struct location *l, struct line *line)
{
	const struct report *r = t->report;
	const struct image *image = &r->images.list[PLACE_IMAGE(place)];
	char raw[LINE_TEXT];

	line->inlined = l->inlined;
	line->module[0] = 0;
	if (PLACE_IMAGE(place) && !image->language) /* its file says the same */
		text_module(image, line->module);
	if (!r->options.full_names)
		short_name_cut(line->module, MODULE_COLUMNS - 2);
	if (l->function)
		snprintf(raw, sizeof raw, "%s", l->function);
	else if (PLACE_IMAGE(place))
		snprintf(raw, sizeof raw, "%.512s+0x%" PRIx64, line->module, PLACE_OFFSET(place));
	else
		snprintf(raw, sizeof raw, "0x%" PRIx64, PLACE_OFFSET(place));
	line->function_columns = text_name(r, raw, FUNCTION_COLUMNS(t), line->function);
	raw[0] = 0;
	if (!r->options.full_names && source_places_jdk(&r->images, place))
		snprintf(raw, sizeof raw, "%s", source_places_jdk(&r->images, place));
	else if (l->file && l->line)
		snprintf(raw, sizeof raw, "%s:%d", short_path(t, place, l->file), l->line);
	else if (l->file)
		snprintf(raw, sizeof raw, "%s", short_path(t, place, l->file));
	line->source_columns = printable_copy(raw, line->source, sizeof line->source);
	if (!r->options.full_names)
		line->source_columns = short_name_cut(line->source, SOURCE_COLUMNS(t));
	if (line->source[0] && t->columns < MODULE_BESIDE)
		line->module[0] = 0;
}

static void make_folded(const struct folded_frame *f, struct line *line)
{
	*line = (struct line){ 0 };
	line->function_columns = text_folded(f, line->function);
}

/* Calls fn for each line of the frames of a row, without those that are folded. */
static void each_line(const struct text *t, const struct report_row *row, const struct folded_stack *stack,
                      void (*fn)(void *, const struct line *), void *arg)
{
	const struct report *r = t->report;
	size_t inner = report_inner(r, row);
	struct line line;

	for (size_t i = 0; i < stack->count && stack->list[i].frame < inner; i++) {
		const struct folded_frame *f = text_frame(stack, i);
		if (f->name[0])
			make_folded(f, &line);
		else
			make_line(t, f->place, f->location, &line);
		fn(arg, &line);
	}
}

struct columns {
	const struct text *text;
	size_t function, source;
};

static void measure(void *arg, const struct line *line)
{
	struct columns *c = arg;

	if (line->function_columns <= FUNCTION_COLUMNS(c->text) && line->function_columns > c->function)
		c->function = line->function_columns;
	if (line->source_columns <= SOURCE_COLUMNS(c->text) && line->source_columns > c->source)
		c->source = line->source_columns;
}

static int padding(size_t width, size_t columns)
{
	return width > columns ? (int)(width - columns) : 0;
}

static void put_line(void *arg, const struct line *line)
{
	const struct columns *c = arg;
	const struct text *t = c->text;

	fprintf(t->out, "        %s", line->function);
	if (line->source[0] || line->module[0])
		fprintf(t->out, "%*s", padding(c->function, line->function_columns), "");
	if (c->source && (line->source[0] || line->module[0]))
		fprintf(t->out, "  %s%*s", line->source, line->module[0] ? padding(c->source, line->source_columns) : 0,
		        "");
	if (line->module[0])
		fprintf(t->out, "  %s(%s)%s", t->dim, line->module, t->plain);
	fputs(line->inlined ? " inlined\n" : "\n", t->out);
}

enum report_figure text_companion(enum report_figure f)
{
	switch (f) {
	case FIGURE_LIVE_BYTES: return FIGURE_LIVE_COUNT;
	case FIGURE_LIVE_COUNT: return FIGURE_LIVE_BYTES;
	case FIGURE_ALLOCATED_BYTES: return FIGURE_ALLOCATED_COUNT;
	default: return FIGURE_ALLOCATED_BYTES;
	}
}

const char *text_samples(uint64_t n)
{
	return text_plural((double)n, "sample", "samples");
}

/* How much of it is kept, and how fast it has come since the attach. */
static void put_speed(const struct text *t, const struct report_row *row)
{
	const struct report *r = t->report;
	bool live = report_is_live(r->options.sort);
	enum report_figure bytes = live ? FIGURE_LIVE_BYTES : FIGURE_ALLOCATED_BYTES;
	double seconds = text_seconds(r);
	char kept[16], speed[40];

	if (text_kept(row->sum[FIGURE_LIVE_BYTES].value, row->sum[FIGURE_ALLOCATED_BYTES].value, kept)[0])
		fprintf(t->out, "   kept %s", kept);
	if (seconds > 0 && !text_trust_mark(t, bytes)[0])
		fprintf(t->out, "   %s/s", size_format(row->sum[bytes].value / seconds, speed));
}

static void put_row_state(const struct text *t, const struct report_row *row)
{
	const struct report *r = t->report;
	enum report_figure f = r->options.sort;
	enum report_figure g = text_companion(f);
	struct estimate x = report_estimate(r, row, f);
	struct estimate y = report_estimate(r, row, g);
	char value[40], range[96], share[16], count[40];

	fprintf(t->out, "%s%s%s%s  %s", t->bold, text_amount(f, x.value, value), t->plain, text_unit(f, x.value),
	        text_interval(f, &x, range));
	fprintf(t->out, "   %s%s%s   %s %s\n", t->bold, text_percent(report_share(r, row, f), share), t->plain,
	        text_grouped((double)row->sum[f].samples, count), text_samples(row->sum[f].samples));
	fprintf(t->out, "      %sin %s%s  %s", t->dim, text_amount(g, y.value, value), text_unit(g, y.value),
	        text_interval(g, &y, range));
	put_speed(t, row);
	fprintf(t->out, "%s\n", t->plain);
}

static void put_row_growth(const struct text *t, const struct report_row *row)
{
	const struct report *r = t->report;
	enum report_figure f = r->options.sort;
	struct estimate x = report_growth(r, row, f);
	char value[40], range[96], before[40], after[40];

	fprintf(t->out, "%s%s%s%s%s  %s", t->bold, x.value > 0 ? "+" : "", text_amount(f, x.value, value), t->plain,
	        text_unit(f, x.value), text_interval(f, &x, range));
	fprintf(t->out, "   %s -> %s", text_amount(f, row->change->old[f].value, before),
	        text_amount(f, row->sum[f].value, after));
	if (row->grown)
		fprintf(t->out, "   %sgrown%s\n", t->warn, t->plain);
	else if (x.low > 0 && row->doubtful)
		fputs("   may be frees that were not seen\n", t->out);
	else if (x.low > 0)
		fputs("   could be chance: many stacks are compared\n", t->out);
	else
		fputs(x.high < 0 ? "   shrunk\n" : "   not distinguishable from zero\n", t->out);
}

void text_slack(const struct text *t, const struct slack *slack)
{
	struct estimate x = report_slack(t->report, slack);
	char value[40], range[96], requested[40], share[16];

	if (!slack->sum.samples || !(x.value > 0))
		return;
	fprintf(t->out, "      %sthe allocator adds %s to %s requested (%s)  %s%s\n", t->dim,
	        size_format(x.value, value), size_format(slack->requested, requested),
	        slack->requested > 0 ? text_percent(x.value / slack->requested, share) : "-",
	        text_interval(FIGURE_LIVE_BYTES, &x, range), t->plain);
}

static void put_row_details(const struct text *t, const struct report_row *row)
{
	const struct report *r = t->report;
	char a[40], b[40], c[40];

	if (!report_compares(r) && r->options.verbose)
		text_slack(t, &row->slack);
	if (!(r->options.plan > 0))
		return;
	struct report_plan plan = report_plan(r, row);
	fprintf(t->out, "      known to +-%s;", text_percent(plan.now, a));
	if (plan.now <= r->options.plan)
		fprintf(t->out, " that is as good as +-%s\n", text_percent(r->options.plan, b));
	else
		fprintf(t->out, " +-%s takes --rate %s for the same time, or %.3g s at the same rate\n",
		        text_percent(r->options.plan, b), size_format(plan.rate, c), plan.seconds);
}

void text_startup(const struct text *t, const struct report_row *row)
{
	const struct report *r = t->report;
	struct line line = { .module = "" };
	size_t first = report_inner(r, row);

	fputs(t->dim, t->out);
	for (size_t i = first; i < row->frame_count; i++) {
		size_t n;
		const struct location *list = report_locations(r, row->frames[i], &n);
		make_line(t, row->frames[i], &list[n - 1], &line);
		fprintf(t->out, "%s%s", i > first ? " < " : "", line.function);
	}
	fprintf(t->out, "%s\n", t->plain);
}

static void put_row(const struct text *t, size_t number, const struct report_row *row)
{
	const struct report *r = t->report;
	struct columns c = { .text = t };
	struct folded_stack stack = { 0 };

	fprintf(t->out, "\n%4zu. ", number);
	if (r->options.leaks)
		text_leak_row(t, row);
	else if (report_compares(r))
		put_row_growth(t, row);
	else
		put_row_state(t, row);
	put_row_details(t, row);
	if (row->unknown || !row->frame_count) {
		fputs(row->unknown ? "        (stack not known)\n" : "        (no frame is shown)\n", t->out);
		return;
	}
	if (folded_stack_make(&stack, t->report, row))
		fputs("        (out of memory)\n", t->out);
	each_line(t, row, &stack, measure, &c);
	each_line(t, row, &stack, put_line, &c);
	folded_stack_done(&stack);
	if (report_depth(r, row) == row->frame_count && report_inner(r, row) < row->frame_count) {
		fputs("        ", t->out);
		text_startup(t, row);
	}
	size_t more = row->frame_count - report_depth(r, row);
	if (more)
		fprintf(t->out, "        %s... %zu more %s%s\n", t->dim, more,
		        text_plural((double)more, "frame", "frames"), t->plain);
	else if (row->flags & DUMP_STACK_TRUNCATED)
		fprintf(t->out, "        %s... the stack could not be walked further%s\n", t->dim, t->plain);
	else if (row->flags & DUMP_STACK_DEEP)
		fprintf(t->out, "        %s... deeper than %u frames%s\n", t->dim, DUMP_FRAMES_MAX, t->plain);
}

/* Whether a row has anything to say in this view. */
static bool has_part(const struct report *r, const struct report_row *row)
{
	enum report_figure f = r->options.sort;

	if (r->options.leaks)
		return row->leak->count.samples;
	if (report_compares(r))
		return row->change->plus[f].samples || row->change->minus[f].samples;
	return row->sum[f].samples;
}

static void put_title(const struct text *t)
{
	const struct report *r = t->report;

	if (r->options.leaks)
		fprintf(t->out, "\nBlocks that are older than %.3g s, stacks that leak first\n",
		        (double)r->age_ns / 1e9);
	else if (report_compares(r))
		fprintf(t->out, "\nStacks by growth of %s, by the lower end of its interval\n",
		        text_title(r->options.sort));
	else
		fprintf(t->out, "\nStacks by %s\n", text_title(r->options.sort));
}

void text_chosen(const struct text *t)
{
	const struct report *r = t->report;
	double error = (1 - r->options.confidence) / 2;

	if (report_listed(r) > 1 && r->largest_rate > 1)
		fprintf(t->out,
		        "    these are chosen by their samples: all lower ends hold together, each upper end by itself "
		        "(%g %% sure)\n",
		        100 * (1 - error));
}

size_t text_rows(const struct text *t)
{
	const struct report *r = t->report;
	size_t shown = 0;

	if (!r->rows.count)
		return 0;
	put_title(t);
	for (size_t i = 0; i < r->rows.count && (!r->options.top || shown < r->options.top); i++) {
		progress_at(r->options.progress, "writing", i, report_shown(r));
		report_want_symbols(r, i, r->options.top ? report_shown(r) : r->rows.count);
		if (has_part(r, &r->rows.list[i]))
			put_row(t, ++shown, &r->rows.list[i]);
	}
	if (!shown)
		fputs("\n      none\n", t->out);
	else if (!r->options.leaks && !report_compares(r))
		text_chosen(t);
	return shown;
}
