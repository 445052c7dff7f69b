/* SPDX-License-Identifier: MIT */
#include "report_text.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "size.h"
#include "utf8.h"

#define FUNCTION_COLUMNS_MAX 44
#define SOURCE_COLUMNS_MAX 28
#define LINE_TEXT 1024

struct text {
	const struct report *report;
	FILE *out;
	const char *bold, *dim, *warn, *plain; /* ANSI sequences or "" */
};

/* One line below a stack, ready to be aligned. */
struct line {
	char function[LINE_TEXT], source[LINE_TEXT], module[LINE_TEXT];
	size_t function_columns, source_columns;
	bool inlined;
};

/* 1234567 -> "1,234,567" */
static const char *grouped(double value, char buffer[40])
{
	char digits[32];
	size_t used = 0;

	snprintf(digits, sizeof digits, "%.0f", value < 1e18 ? value : 1e18);
	size_t n = strlen(digits);
	for (size_t i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			buffer[used++] = ',';
		buffer[used++] = digits[i];
	}
	buffer[used] = 0;
	return buffer;
}

static bool is_bytes(enum report_figure f)
{
	return f == FIGURE_LIVE_BYTES || f == FIGURE_ALLOCATED_BYTES;
}

static const char *amount(enum report_figure f, double value, char buffer[40])
{
	return is_bytes(f) ? size_format(value, buffer) : grouped(value, buffer);
}

static const char *interval(enum report_figure f, const struct estimate *x, char buffer[96])
{
	char low[40], high[40];

	if (x->low == x->high)
		snprintf(buffer, 96, "exact");
	else
		snprintf(buffer, 96, "%s .. %s", amount(f, x->low, low), amount(f, x->high, high));
	return buffer;
}

static const char *percent(double share, char buffer[16])
{
	snprintf(buffer, 16, "%.*f %%", share > 0 && share < 0.0995 ? 2 : 1, 100 * share);
	return buffer;
}

static void label(const struct text *t, const char *name)
{
	fprintf(t->out, "  %s%-10s%s ", t->dim, name, t->plain);
}

static void put_session(const struct text *t)
{
	const struct report *r = t->report;
	const struct dump_header *h = dump_header(r->dump);
	char command[128], program[512], host[128], when[64] = "at an unknown time";
	time_t seconds = (time_t)(h->clock_start.realtime_ns / 1000000000u);
	struct tm tm;

	utf8_printable(h->command, command, sizeof command);
	utf8_printable(h->program, program, sizeof program);
	utf8_printable(h->host, host, sizeof host);
	label(t, "target");
	fprintf(t->out, "%s%s%s, PID %d", t->bold, command, t->plain, h->pid);
	if (host[0])
		fprintf(t->out, " on %s", host);
	if (program[0])
		fprintf(t->out, ", %s", program);
	putc('\n', t->out);

	if (h->clock_start.realtime_ns && localtime_r(&seconds, &tm))
		strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S %z", &tm);
	label(t, "session");
	fprintf(t->out, "%s, %.1f s, ", when, (double)dump_duration_ns(r->dump) / 1e9);
	switch (dump_end(r->dump)) {
	case DUMP_END_RUNNING: fputs("still running", t->out); break;
	case DUMP_END_DETACHED: fputs("ended by detaching", t->out); break;
	case DUMP_END_ABANDONED: fputs("abandoned: memattach died or could not go on", t->out); break;
	case DUMP_END_KILLED:
		fprintf(t->out, "target killed by signal %d", h->end_detail);
		if (sigabbrev_np(h->end_detail))
			fprintf(t->out, " (SIG%s)", sigabbrev_np(h->end_detail));
		break;
	case DUMP_END_EXITED:
		if (h->state == DUMP_STATE_EXECED)
			fputs("target called execve", t->out);
		else
			fprintf(t->out, "target exited with status %d", h->end_detail);
		break;
	}
	putc('\n', t->out);
}

static void put_samples(const struct text *t)
{
	const struct report *r = t->report;
	const struct dump_header *h = dump_header(r->dump);
	uint64_t taken = dump_counter(r->dump, DUMP_COUNTER_samples_taken);
	char a[40], b[40], c[40];

	label(t, "sampling");
	if (r->largest_rate <= 1)
		fputs("every allocation\n", t->out);
	else
		fprintf(t->out, "one sample per %s allocated, on average, at random\n", size_format((double)h->rate_bytes, a));
	label(t, "samples");
	fprintf(t->out, "%s taken, %s live, %s lost\n", grouped((double)taken, a),
		grouped((double)r->total.sum[FIGURE_LIVE_COUNT].samples, b), grouped((double)r->lost, c));
	label(t, "stacks");
	fprintf(t->out, "%s different; ", grouped((double)r->row_count, a));
	uint64_t cut = dump_counter(r->dump, DUMP_COUNTER_stacks_truncated);
	uint64_t deep = dump_counter(r->dump, DUMP_COUNTER_stacks_deep);
	if (taken)
		fprintf(t->out, "%s of the samples have a stack that ends early",
			percent(fmin(1, (double)(cut + deep) / (double)taken), a));
	else
		fputs("no sample", t->out);
	if (deep)
		fprintf(t->out, " (%s deeper than %u frames)", grouped((double)deep, b), DUMP_FRAMES_MAX);
	putc('\n', t->out);
	label(t, "window");
	fputs("only what was allocated since memattach attached is seen\n", t->out);
}

static void put_warning(const struct text *t, const char *what, const char *text)
{
	char clean[LINE_TEXT];

	utf8_printable(text, clean, sizeof clean);
	label(t, what);
	fprintf(t->out, "%s%s%s\n", t->warn, clean, t->plain);
}

/* What the figures lack: losses by name, what memattach noted, what of the file could not be read. */
static void put_warnings(const struct text *t)
{
	static const enum dump_counter losses[] = { DUMP_COUNTER_lost_busy, DUMP_COUNTER_lost_live_full,
						    DUMP_COUNTER_lost_stack_full, DUMP_COUNTER_lost_history,
						    DUMP_COUNTER_frees_missed };
#define COUNTER_TEXT_(name, text) text,
	static const char *const texts[] = { DUMP_COUNTER_LIST(COUNTER_TEXT_) };
#undef COUNTER_TEXT_
	const struct report *r = t->report;
	char line[LINE_TEXT], number[40];

	for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
		uint64_t n = dump_counter(r->dump, losses[i]);
		if (!n)
			continue;
		snprintf(line, sizeof line, "%s %s", grouped((double)n, number), texts[losses[i]]);
		put_warning(t, losses[i] == DUMP_COUNTER_lost_history ? "dropped" : "lost", line);
	}
	for (size_t i = 0; i < r->note_count; i++)
		put_warning(t, "not seen" + (r->notes[i].kind == DUMP_NOTE_OTHER || r->notes[i].kind == DUMP_NOTE_FULL ? 8 : 0),
			    r->notes[i].text);
	for (int i = 0; i < DUMP_SKIP_COUNT; i++) {
		uint64_t n = dump_skipped(r->dump, i);
		if (!n)
			continue;
		snprintf(line, sizeof line, "%s: %s", dump_skip_text(i), grouped((double)n, number));
		put_warning(t, i == DUMP_SKIP_busy ? "skipped" : "damage", line);
	}
}

static void put_totals(const struct text *t)
{
	static const char *const names[] = { "live bytes", "live blocks", "allocated bytes", "allocated blocks" };
	const struct report *r = t->report;
	char level[40], value[40], range[96];

	snprintf(level, sizeof level, "%g %% interval", 100 * r->options.confidence);
	fprintf(t->out, "\n  %s%-18s %14s   %s%s\n", t->dim, "", "estimate", level, t->plain);
	for (int f = 0; f < FIGURE_COUNT; f++) {
		struct estimate x = report_estimate(r, &r->total, f);
		fprintf(t->out, "  %-18s %s%14s%s   %s\n", names[f], t->bold, amount(f, x.value, value), t->plain,
			interval(f, &x, range));
	}
}

/* The last two components say which file it is. */
static const char *short_path(const char *path)
{
	const char *p = path + strlen(path);

	for (int slashes = 0; p > path; p--)
		if (p[-1] == '/' && ++slashes == 2)
			break;
	return p;
}

static void make_line(const struct report *r, uint64_t place, const struct location *l, struct line *line)
{
	const struct image *image = &r->images.list[PLACE_IMAGE(place)];
	char raw[LINE_TEXT];

	line->inlined = l->inlined;
	line->module[0] = 0;
	if (PLACE_IMAGE(place))
		utf8_printable(image_name(image), line->module, sizeof line->module);
	if (l->function)
		snprintf(raw, sizeof raw, "%s", l->function);
	else if (PLACE_IMAGE(place))
		snprintf(raw, sizeof raw, "%.512s+0x%" PRIx64, line->module, PLACE_OFFSET(place));
	else
		snprintf(raw, sizeof raw, "0x%" PRIx64, PLACE_OFFSET(place));
	line->function_columns = utf8_printable(raw, line->function, sizeof line->function);
	raw[0] = 0;
	if (l->file && l->line)
		snprintf(raw, sizeof raw, "%s:%d", short_path(l->file), l->line);
	else if (l->file)
		snprintf(raw, sizeof raw, "%s", short_path(l->file));
	line->source_columns = utf8_printable(raw, line->source, sizeof line->source);
}

/* Calls fn for each line of the frames of a row. */
static void each_line(const struct text *t, const struct report_row *row, void (*fn)(void *, const struct line *), void *arg)
{
	static const struct location nothing;
	const struct report *r = t->report;
	struct line line;

	for (uint32_t i = 0; i < row->frame_count && (!r->options.depth || i < r->options.depth); i++) {
		const struct location *list = &nothing;
		size_t n = 1;
		if (r->symbols)
			list = symbols_find(r->symbols, row->frames[i], &n);
		for (size_t k = 0; k < n; k++) {
			make_line(r, row->frames[i], &list[k], &line);
			fn(arg, &line);
		}
	}
}

struct columns {
	const struct text *text;
	size_t function, source;
};

static void measure(void *arg, const struct line *line)
{
	struct columns *c = arg;

	if (line->function_columns <= FUNCTION_COLUMNS_MAX && line->function_columns > c->function)
		c->function = line->function_columns;
	if (line->source_columns <= SOURCE_COLUMNS_MAX && line->source_columns > c->source)
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

	fprintf(t->out, "        %s%*s", line->function, padding(c->function, line->function_columns), "");
	if (c->source)
		fprintf(t->out, "  %s%*s", line->source, padding(c->source, line->source_columns), "");
	if (line->module[0])
		fprintf(t->out, "  %s(%s)%s", t->dim, line->module, t->plain);
	fputs(line->inlined ? " inlined\n" : "\n", t->out);
}

/* The figure that goes with the one that is sorted by: blocks with bytes. */
static enum report_figure companion(enum report_figure f)
{
	switch (f) {
	case FIGURE_LIVE_BYTES: return FIGURE_LIVE_COUNT;
	case FIGURE_LIVE_COUNT: return FIGURE_LIVE_BYTES;
	case FIGURE_ALLOCATED_BYTES: return FIGURE_ALLOCATED_COUNT;
	default: return FIGURE_ALLOCATED_BYTES;
	}
}

static void put_row(const struct text *t, size_t number, const struct report_row *row)
{
	const struct report *r = t->report;
	enum report_figure f = r->options.sort;
	enum report_figure g = companion(f);
	struct estimate x = report_estimate(r, row, f);
	struct estimate y = report_estimate(r, row, g);
	struct columns c = { .text = t };
	uint64_t samples = row->sum[f].samples;
	char value[40], range[96], share[16], other[40], other_range[96], count[40];

	fprintf(t->out, "\n%4zu. %s%s%s  %s", number, t->bold, amount(f, x.value, value), t->plain,
		interval(f, &x, range));
	if (!is_bytes(f))
		fputs(" blocks", t->out);
	fprintf(t->out, "   %s%s%s   %s %s\n", t->bold, percent(report_share(r, row, f), share), t->plain,
		grouped((double)samples, count), samples == 1 ? "sample" : "samples");
	fprintf(t->out, "      %sin %s%s  %s%s\n", t->dim, amount(g, y.value, other), is_bytes(g) ? "" : " blocks",
		interval(g, &y, other_range), t->plain);
	if (row->unknown) {
		fputs("        (stack not known)\n", t->out);
		return;
	}
	each_line(t, row, measure, &c);
	each_line(t, row, put_line, &c);
	if (r->options.depth && row->frame_count > r->options.depth)
		fprintf(t->out, "        %s... %zu more frames%s\n", t->dim, row->frame_count - r->options.depth, t->plain);
	else if (row->flags & DUMP_STACK_TRUNCATED)
		fprintf(t->out, "        %s... the stack could not be walked further%s\n", t->dim, t->plain);
	else if (row->flags & DUMP_STACK_DEEP)
		fprintf(t->out, "        %s... deeper than %u frames%s\n", t->dim, DUMP_FRAMES_MAX, t->plain);
}

static size_t put_rows(const struct text *t)
{
	static const char *const titles[] = { "live bytes", "live blocks", "allocated bytes", "allocated blocks" };
	const struct report *r = t->report;
	enum report_figure f = r->options.sort;
	size_t shown = 0;

	if (!r->row_count)
		return 0;
	fprintf(t->out, "\nStacks by %s\n", titles[f]);
	while (shown < report_shown(r) && r->rows[shown].sum[f].samples) {
		put_row(t, shown + 1, &r->rows[shown]);
		shown++;
	}
	return shown;
}

static void put_rest(const struct text *t, size_t shown)
{
	const struct report *r = t->report;
	enum report_figure f = r->options.sort;
	struct report_row rest = { 0 };
	char number[40], value[40], share[16];
	size_t more = 0;

	for (size_t i = shown; i < r->row_count && r->rows[i].sum[f].samples; i++, more++)
		estimate_merge(&rest.sum[f], &r->rows[i].sum[f]);
	putc('\n', t->out);
	if (more)
		fprintf(t->out, "%s more stacks hold %s%s (%s); --top 0 shows all.\n", grouped((double)more, number),
			amount(f, rest.sum[f].value, value), is_bytes(f) ? "" : " blocks",
			percent(report_share(r, &rest, f), share));
	if (report_detection_limit(r) > 0)
		fprintf(t->out, "A stack without a sample holds less than %s with %g %% confidence.\n",
			size_format(report_detection_limit(r), value), 100 * r->options.confidence);
}

/* Why frames have no names. */
static void put_missing_symbols(const struct text *t)
{
	const struct report *r = t->report;
	char path[LINE_TEXT];

	for (uint32_t i = 1; r->symbols && i < r->images.count; i++) {
		const struct image_file *file = symbols_image_file(r->symbols, i);
		if (!file || file->source == IMAGE_SOURCE_FILE || !file->reason)
			continue;
		utf8_printable(r->images.list[i].path, path, sizeof path);
		fprintf(t->out, "%s %s: %s.\n", file->source == IMAGE_SOURCE_NONE ? "No symbols for" : "Debug file used for",
			path, file->reason);
	}
}

void report_text(const struct report *r, const char *name, FILE *out, bool colour)
{
	struct text t = { .report = r,
			  .out = out,
			  .bold = colour ? "\033[1m" : "",
			  .dim = colour ? "\033[2m" : "",
			  .warn = colour ? "\033[33m" : "",
			  .plain = colour ? "\033[0m" : "" };
	char clean[LINE_TEXT];

	utf8_printable(name, clean, sizeof clean);
	fprintf(out, "%s%s%s\n\n", t.bold, clean, t.plain);
	put_session(&t);
	put_samples(&t);
	put_warnings(&t);
	put_totals(&t);
	size_t shown = put_rows(&t);
	put_rest(&t, shown);
	put_missing_symbols(&t);
}
