/* SPDX-License-Identifier: MIT */
#include "live/live_screen.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/printable.h"
#include "base/size.h"
#include "text/text.h"

#define NAME_COLUMNS 24 /* that a name should have before columns are left out for it */
#define HEAD_TEXT 512
#define WIDE_COLUMNS 110u
#define NARROW_TREND 5u
#define HEAD_LINES 4u  /* with the names of the columns */
#define LEAST_LINES 8u /* below, the head is the names of the columns alone */
#define WINDOW_LEAST_S 2.0
#define ERASE_LINE "\033[K"
#define LAST_ROWS 10u
#define LAST_COLUMNS 120u

/* ---- columns ---- */

enum column { LIVE, MARGIN, SHARE, GROWTH, BLOCKS, KEPT, SAMPLES, COLUMN_COUNT };

static const struct {
	const char *name;
	size_t width;
	int rank; /* the largest is left out first */
} columns_of[COLUMN_COUNT] = {
	[LIVE] = { "LIVE", 10, 0 },       [MARGIN] = { "+-", 6, 2 },      [SHARE] = { "SHARE", 6, 3 },
	[GROWTH] = { "GROWTH/S", 12, 1 }, [BLOCKS] = { "BLOCKS", 11, 5 }, [KEPT] = { "KEPT", 6, 4 },
	[SAMPLES] = { "SAMPLES", 8, 6 },
};

/* The columns of a rank up to this are shown. */
static int last_rank(size_t columns)
{
	for (int rank = COLUMN_COUNT - 1; rank > 0; rank--) {
		size_t used = NAME_COLUMNS;
		for (int c = 0; c < COLUMN_COUNT; c++)
			used += columns_of[c].rank <= rank ? columns_of[c].width + 1 : 0;
		if (used <= columns)
			return rank;
	}
	return 0;
}

static const char *margin_text(const struct estimate *x, char out[32])
{
	double side = fmax(x->high - x->value, x->value - x->low);

	if (x->exact && x->low == x->high)
		return "exact";
	if (!(x->value > 0))
		return "-";
	if (side > 9.995 * x->value)
		return ">999%";
	snprintf(out, 32, "%.0f%%", 100 * side / x->value);
	return out;
}

static const char *growth_text(const struct live_line *l, char out[32])
{
	char size[SIZE_TEXT];

	if (!l->growth_known)
		return "-";
	if (l->growth == 0)
		return "0";
	snprintf(out, 32, "%s%s%s", l->verdict ? "" : "~",
	         l->growth < 0 ? "-"
	         : l->verdict  ? "+"
	                       : "",
	         size_format(fabs(l->growth), size));
	return out;
}

static const char *cell_text(const struct live_line *l, enum column c, char out[40])
{
	switch (c) {
	case LIVE: return size_format(l->live.value, out);
	case MARGIN: return margin_text(&l->live, out);
	case SHARE: snprintf(out, 40, "%.1f%%", 100 * l->share); return out;
	case GROWTH: return growth_text(l, out);
	case BLOCKS: return text_grouped(l->blocks, out);
	case KEPT:
		if (l->kept < 0)
			return "-";
		snprintf(out, 40, "%.0f%%", 100 * fmin(1, l->kept));
		return out;
	default: return text_grouped((double)l->samples, out);
	}
}

static const char *colour_of(const struct live_line *l, enum column c)
{
	if (c == LIVE)
		return "\033[1m";
	if (c != GROWTH)
		return "";
	return l->verdict > 0 ? "\033[1;31m" : l->verdict < 0 ? "\033[32m" : "\033[2m";
}

static size_t put_cell(const char *text, size_t width, const char *on, FILE *out)
{
	size_t have = strlen(text), pad = have < width ? width - have : 0;

	fprintf(out, "%*s%s%s%s ", (int)pad, "", on, text, on[0] ? "\033[0m" : "");
	return pad + have + 1;
}

size_t live_line_text(const struct live_line *line, size_t columns, bool colour, FILE *out)
{
	int rank = last_rank(columns);
	size_t used = 0;
	char text[40];

	for (int c = 0; c < COLUMN_COUNT; c++)
		if (columns_of[c].rank <= rank)
			used += put_cell(cell_text(line, (enum column)c, text), columns_of[c].width,
			                 colour ? colour_of(line, (enum column)c) : "", out);
	return used;
}

size_t live_line_head(size_t columns, FILE *out)
{
	int rank = last_rank(columns);
	size_t used = 0;

	for (int c = 0; c < COLUMN_COUNT; c++)
		if (columns_of[c].rank <= rank)
			used += put_cell(columns_of[c].name, columns_of[c].width, "", out);
	return used;
}

struct live_line live_line_of(const struct live_frame *f, const struct live_row *row)
{
	const struct live_stack *sum = row->figures;
	double all = f->heap->total.live[0].value, window = live_heap_window(f->heap);

	return (struct live_line){
		.live = live_heap_estimate(f->heap, sum, true, f->confidence),
		.share = all > 0 ? sum->live[0].value / all : 0,
		.blocks = sum->live[1].value,
		.kept = sum->allocated > 0 ? sum->live[0].value / sum->allocated : -1,
		.growth = window > 0 ? row->growth / window : 0,
		.growth_known = window >= WINDOW_LEAST_S,
		.verdict = row->verdict,
		.samples = sum->live[0].samples,
	};
}

/* ---- head ---- */

static uint64_t count(const struct live_frame *f, enum dump_counter counter)
{
	return f->heap->counters[counter];
}

static void head_session(const struct live_frame *f, char out[HEAD_TEXT])
{
	const struct dump_header *h = &f->heap->header;
	double seconds = (double)f->heap->duration_ns / 1e9;
	char rate[SIZE_TEXT], every[64];

	snprintf(every, sizeof every, "one sample per %s", size_format((double)h->rate_bytes, rate));
	snprintf(out, HEAD_TEXT, "%s (PID %d on %s)  %s for %.0f s  %s, %.0f a second%s", h->command, h->pid, h->host,
	         dump_end_name(f->heap->end), seconds, h->rate_bytes > 1 ? every : "every allocation",
	         seconds > 0 ? (double)count(f, DUMP_COUNTER_samples_taken) / seconds : 0,
	         f->choice.paused ? "  PAUSED" : "");
}

/* A bar for each of the last looks, in relation to the highest of them. */
static void trend_text(const struct live_frame *f, size_t bars_most, char out[4 * LIVE_TREND])
{
	static const char *const bars[] = { "\u2581", "\u2582", "\u2583", "\u2584",
		                            "\u2585", "\u2586", "\u2587", "\u2588" };
	double most = 0;

	size_t first = f->trend_count > bars_most ? f->trend_count - bars_most : 0;
	out[0] = 0;
	for (size_t i = first; i < f->trend_count; i++)
		most = fmax(most, f->trend[i]);
	for (size_t i = first; most > 0 && i < f->trend_count && i < LIVE_TREND; i++)
		strcat(out, bars[(size_t)fmin(7, f->trend[i] / most * 8)]);
}

/* What a narrow screen cuts off comes last. */
static void head_totals(const struct live_frame *f, size_t columns, char out[HEAD_TEXT])
{
	const struct live_stack *total = &f->heap->total;
	const struct live_line line = live_line_of(f, &f->rows->total);
	char live[40], range[96], allocated[SIZE_TEXT], growth[32], kept[32] = "", grows[64] = "";
	char trend[4 * LIVE_TREND], size[SIZE_TEXT], private[40] = "";
	uint64_t private_bytes = f->heap->header.private_latest_bytes;

	if (line.growth_known)
		snprintf(grows, sizeof grows, "  growth %s/s", growth_text(&line, growth));
	if (line.kept >= 0)
		snprintf(kept, sizeof kept, ", %.0f %% kept", 100 * fmin(1, line.kept));
	if (private_bytes)
		snprintf(private, sizeof private, "  private %s", size_format((double)private_bytes, size));
	trend_text(f, columns < WIDE_COLUMNS ? NARROW_TREND : LIVE_TREND, trend);
	snprintf(out, HEAD_TEXT, "live %s (%s)%s%s%s%s  allocated %s%s", size_format(line.live.value, live),
	         text_interval(FIGURE_LIVE_BYTES, &line.live, range), trend[0] ? " " : "", trend, grows, private,
	         size_format(total->allocated, allocated), kept);
}

/* What the figures lack. */
static bool head_lost(const struct live_frame *f, char out[HEAD_TEXT])
{
	const struct live_heap *h = f->heap;
	uint64_t lost = count(f, DUMP_COUNTER_lost_busy) + count(f, DUMP_COUNTER_lost_live_full) +
	                count(f, DUMP_COUNTER_lost_stack_full);
	uint64_t missed = count(f, DUMP_COUNTER_frees_missed);

	if (lost)
		snprintf(out, HEAD_TEXT, "warning: %" PRIu64 " samples lost; upper ends hold them", lost);
	else if (missed)
		snprintf(out, HEAD_TEXT, "warning: %" PRIu64 " frees were not seen: live figures may be too large",
		         missed);
	else if (h->skipped)
		snprintf(out, HEAD_TEXT, "warning: %" PRIu64 " parts of the dump could not be read", h->skipped);
	return lost || missed || h->skipped;
}

static void head_view(const struct live_frame *f, char out[HEAD_TEXT])
{
	double window = live_heap_window(f->heap);
	char growth[64];

	snprintf(growth, sizeof growth, "growth of %.0f s, ~ may be chance", window);
	if (f->choice.typing)
		snprintf(out, HEAD_TEXT, "/%s_  rows with this text; Enter keeps it, Esc clears", f->choice.filter);
	else if (f->notice)
		snprintf(out, HEAD_TEXT, "%s", f->notice);
	else if (!head_lost(f, out))
		snprintf(out, HEAD_TEXT, "by %s, sorted by %s%s%s; %s; h help, q quit", group_by_name(f->choice.by),
		         live_sort_name(f->choice.sort), f->choice.filter[0] ? "; only /" : "", f->choice.filter,
		         window < WINDOW_LEAST_S ? "growth counts from now" : growth);
}

/* ---- screen ---- */

/* A line of at most so many columns. */
static void put_cut(const char *text, size_t columns, const char *end, FILE *out)
{
	char clean[LIVE_NAME_TEXT];

	size_t have = printable_copy(text, clean, sizeof clean);
	size_t bytes = 0;
	for (size_t n = 0; n < columns && n < have; n++)
		bytes += printable_sequence((const unsigned char *)clean + bytes);
	fwrite(clean, 1, bytes, out);
	fputs(end, out);
}

void live_screen_line(const char *text, size_t columns, FILE *out)
{
	put_cut(text, columns, ERASE_LINE "\r\n", out);
}

/* mark: before the name. */
static void put_row(const struct live_frame *f, const struct live_row *row, size_t columns, bool colour,
                    const char *mark, const char *end, FILE *out)
{
	const struct live_line line = live_line_of(f, row);
	char name[LIVE_NAME_TEXT];
	size_t used = live_line_text(&line, columns, colour, out) + strlen(mark);

	if (used <= columns)
		fputs(mark, out);
	put_cut(used < columns ? live_rows_name(f->heap, f->names, row, name) : "", used < columns ? columns - used : 0,
	        end, out);
}

static void put_titles(const struct live_frame *f, size_t columns, bool colour, FILE *out)
{
	fputs(colour ? "\033[7m" : "", out);
	size_t used = f->choice.whole ? 0 : live_line_head(columns, out);
	const char *what = f->choice.whole            ? "THE WHOLE STACK, Enter goes back"
	                   : f->choice.by == BY_STACK ? " FUNCTION < CALLERS"
	                                              : " HELD BY";
	size_t left = used < columns ? columns - used : 0;
	fprintf(out, "%-*.*s%s" ERASE_LINE "\r\n", (int)left, (int)left, what, colour ? "\033[0m" : "");
}

static void put_help(size_t columns, size_t lines, FILE *out)
{
	static const char *const text[] = {
		"The live heap, once a second.",
		"",
		"  s           sort by live bytes, growth, blocks, samples",
		"  b           rows are stacks, functions, files, lines, modules",
		"  p, space    pause, go on",
		"  z           count growth from now on",
		"  up, down, page up, page down, home, end, j, k, g, G    scroll",
		"  Enter       the whole stack of the row with >, or the largest one of it",
		"  /           only rows with a text that is typed now; Esc: all",
		"  h, ?        this help",
		"  q           quit",
		"",
		"LIVE      bytes that are allocated and not freed, since the attach",
		"+-        the larger half of their 95 % interval, or what --confidence says",
		"GROWTH/S  + grown and - shrunk for certain, ~ may be chance",
		"KEPT      live bytes in relation to all that were allocated",
		"SAMPLES   what the figures are estimated from",
	};

	for (size_t i = 0; i < sizeof text / sizeof text[0] && i + 1 < lines; i++)
		live_screen_line(text[i], columns, out);
}

size_t live_screen_page(size_t lines)
{
	size_t head = lines < LEAST_LINES ? 1 : HEAD_LINES;

	return lines > head ? lines - head : 0;
}

static void put_head(const struct live_frame *f, size_t columns, size_t lines, bool colour, FILE *out)
{
	char text[HEAD_TEXT];

	if (lines >= LEAST_LINES) {
		head_session(f, text);
		live_screen_line(text, columns, out);
		head_totals(f, columns, text);
		live_screen_line(text, columns, out);
		head_view(f, text);
		live_screen_line(text, columns, out);
	}
	put_titles(f, columns, colour, out);
}

struct whole_line {
	size_t columns;
	FILE *out;
};

static void put_whole_line(void *arg, const char *text)
{
	const struct whole_line *l = arg;

	live_screen_line(text, l->columns, l->out);
}

/* The rows of the page. */
static void put_rows(const struct live_frame *f, size_t columns, size_t page, bool colour, FILE *out)
{
	size_t end = f->choice.first + page;

	for (size_t i = f->choice.first; i < end && i < f->rows->count && f->choice.by == BY_STACK; i++)
		live_names_want(f->heap, f->rows->list[i].figures);
	for (size_t i = f->choice.first; i < end && i < f->rows->count; i++) {
		put_row(f, &f->rows->list[i], columns, colour, i == f->choice.chosen ? ">" : " ", ERASE_LINE "\r\n",
		        out);
	}
}

void live_screen_write(const struct live_frame *f, size_t columns, size_t lines, bool colour, FILE *out)
{
	size_t page = live_screen_page(lines);
	struct whole_line line = { columns, out };

	fputs("\033[H", out);
	if (f->choice.help) {
		put_help(columns, lines, out);
	} else {
		put_head(f, columns, lines, colour, out);
		if (f->choice.whole && f->whole)
			live_names_whole(f->heap, f->whole, f->choice.line, page, put_whole_line, &line);
		else
			put_rows(f, columns, page, colour, out);
	}
	fputs("\033[J", out);
}

void live_screen_last(const struct live_frame *f, FILE *out)
{
	char text[HEAD_TEXT];

	head_session(f, text);
	put_cut(text, LAST_COLUMNS, "\n", out);
	head_totals(f, LAST_COLUMNS, text);
	put_cut(text, LAST_COLUMNS, "\n", out);
	live_line_head(LAST_COLUMNS, out);
	fputs("\n", out);
	for (size_t i = 0; i < f->rows->count && i < LAST_ROWS; i++)
		put_row(f, &f->rows->list[i], LAST_COLUMNS, false, "", "\n", out);
}

/* ---- for scripts ---- */

static void put_record(const struct live_frame *f, const struct live_row *row, const char *name, FILE *out)
{
	static const char *const verdicts[] = { "shrunk", "chance", "grown" };
	const struct live_line l = live_line_of(f, row);

	fprintf(out, "%.0f\t%.0f\t%.0f\t%.4f\t", l.live.value, l.live.low, l.live.high, l.share);
	if (l.growth_known)
		fprintf(out, "%.0f\t%s\t", l.growth, verdicts[l.verdict + 1]);
	else
		fputs("-\t-\t", out);
	fprintf(out, "%.0f\t", l.blocks);
	if (l.kept >= 0)
		fprintf(out, "%.4f\t", fmin(1, l.kept));
	else
		fputs("-\t", out);
	fprintf(out, "%" PRIu64 "\t%s\n", l.samples, name);
}

void live_batch_write(const struct live_frame *f, size_t top, FILE *out)
{
	char text[HEAD_TEXT], name[LIVE_NAME_TEXT];

	head_session(f, text);
	printable_copy(text, text, sizeof text);
	fprintf(out, "# %s\n", text);
	if (head_lost(f, text))
		fprintf(out, "# %s\n", text);
	fputs("live\tlow\thigh\tshare\tgrowth\tverdict\tblocks\tkept\tsamples\tname\n", out);
	put_record(f, &f->rows->total, "total", out);
	for (size_t i = 0; i < f->rows->count && (!top || i < top); i++)
		put_record(f, &f->rows->list[i], live_rows_name(f->heap, f->names, &f->rows->list[i], name), out);
	fputs("\n", out);
}
