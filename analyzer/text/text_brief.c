/* SPDX-License-Identifier: MIT */
/* The text report of a heap in a few lines. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/deepest.h"
#include "filter/fold.h"
#include "base/printable.h"
#include "output/short_name.h"
#include "base/size.h"
#include "text/text.h"

#define ENOUGH_SAMPLES 100u
#define BUSY_SAMPLES 10u   /* to say who allocated, where nothing is live */
#define MOST_OVERHEAD 25.0 /* % */

#define SHARE_SAID 5e-5 /* less would be 0.00 % */
#define NAME_COLUMNS 48
#define SOURCE_COLUMNS 40
#define CALLER_COLUMNS 28
#define CALLERS_COLUMNS 60
#define TOTAL_COLUMNS 110u   /* with less the blocks stand below */
#define NEXT_NAME_COLUMNS 10 /* three times, in 120 columns */

double text_seconds(const struct report *r)
{
	if (r->session_count != 1)
		return 0;
	return (double)(r->options.at_ns ? r->options.at_ns : r->sessions[0].duration_ns) / 1e9;
}

static const char *hedge(enum trust_value value)
{
	return value == TRUST_UPPER_BOUND ? "at most " : value == TRUST_LOWER_BOUND ? "at least " : "about ";
}

static const char *level_text(const struct report *r, const struct estimate *x, char text[40])
{
	text[0] = 0;
	if (x->low < x->high)
		snprintf(text, 40, ", %g %% sure", 100 * r->options.confidence);
	return text;
}

/* A name in bold, and where it is. */
static void put_function(const struct text *t, uint64_t place, const struct location *l)
{
	char name[LINE_TEXT], source[LINE_TEXT];

	text_name(t->report, l->function, NAME_COLUMNS, name);
	fprintf(t->out, "%s%s%s", t->bold, name, t->plain);
	text_source(&t->report->images, place, l, source);
	if (!t->report->options.full_names)
		short_name_cut(source, SOURCE_COLUMNS);
	if (source[0])
		fprintf(t->out, " (%s)", source);
}

/* The deepest function with more than half below it. If one row has so much, its own sentence says it. */
static void put_deepest(const struct text *t)
{
	const struct report *r = t->report;
	enum report_figure f = report_is_live(r->options.sort) ? FIGURE_LIVE_BYTES : FIGURE_ALLOCATED_BYTES;
	struct deepest d;
	char share[16];

	if (r->options.by != BY_STACK || !r->symbols || !r->rows.count || report_share(r, r->rows.list, f) > 0.5 ||
	    deepest_find(r, f, &d) || !d.location)
		return;
	fprintf(t->out, ";\n%s%s of it comes from below ", r->rows.count > DEEPEST_ROWS ? "at least " : "",
	        text_percent(d.share, share));
	put_function(t, d.place, d.location);
}

/* Whether it is a function that has a name. */
static bool is_named(const struct folded_frame *f)
{
	return !f->name[0] && f->location->function && f->location->function[0] != '[';
}

/* Whether it says nothing as a caller, of what an engine runs without a name no more than that. */
static bool is_passed(const struct folded_frame *f)
{
	return f->package || (f->name[0] && f->name[0] != '[') ||
	       (!f->name[0] && (!f->location->function || fold_is_standard(f->location->function, f->location->file)));
}

/* " < caller", if it is among the first ones and the line has room for it. */
static void put_caller(const struct text *t, const struct folded_frame *f, size_t *columns)
{
	char name[LINE_TEXT];

	*columns += 3 + text_name(t->report, f->name[0] ? f->name : f->location->function, CALLER_COLUMNS, name);
	if (*columns <= CALLERS_COLUMNS)
		fprintf(t->out, " < %s", name);
}

bool text_owner(const struct text *t, const char *before, const struct report_row *row)
{
	size_t inner = report_inner(t->report, row), columns = 0;
	const struct location *owner = NULL;
	struct folded_stack stack = { 0 };

	if (folded_stack_make(&stack, t->report, row))
		stack.count = 0;
	for (size_t i = 0; i < stack.count; i++) {
		const struct folded_frame *f = text_frame(&stack, i);
		if (f->frame >= inner || (owner ? is_passed(f) : !is_named(f)))
			continue;
		if (owner) {
			put_caller(t, f, &columns);
			continue;
		}
		owner = f->location;
		fprintf(t->out, ";\n%s%s", before, i ? "functions without names below " : "");
		put_function(t, f->place, owner);
	}
	folded_stack_done(&stack);
	return owner;
}

/* The function of the first row, and where it is. */
static void put_largest(const struct text *t)
{
	const struct report *r = t->report;
	const struct report_row *row = r->rows.list;
	char share[16], low[16], high[16];

	if (!r->rows.count || !row->sum[r->options.sort].samples || !row->frame_count ||
	    report_share(r, row, r->options.sort) < SHARE_SAID)
		return;
	const bool largest = report_first_is_largest(r, r->options.sort);
	if (!text_owner(t, largest ? "the largest stack, of " : "one of the largest stacks, of ", row))
		return;
	struct estimate x = report_share_interval(r, row, r->options.sort);
	fprintf(t->out, ", %s %s", report_is_live(r->options.sort) ? "holds" : "allocated",
	        text_percent(x.value, share));
	if (x.low < x.high)
		fprintf(t->out, " (%s .. %s)", text_percent(x.low, low), text_percent(x.high, high));
	fputs(" of it", t->out);
}

/* Where nothing is live: who allocated most of what came and went. Rows are sorted by that then. */
static void put_busiest(const struct text *t)
{
	const struct report *r = t->report;
	struct estimate x = report_estimate(r, &r->total, FIGURE_ALLOCATED_BYTES);
	char value[40], share[16], low[16], high[16];

	if (!report_is_live(r->options.sort) || r->total.sum[FIGURE_LIVE_COUNT].samples ||
	    r->total.sum[FIGURE_ALLOCATED_COUNT].samples < BUSY_SAMPLES || !r->rows.count || !r->rows.list->frame_count)
		return;
	const bool most = report_first_is_largest(r, FIGURE_ALLOCATED_BYTES);
	if (!text_owner(t,
	                most ? "the stack that allocated most of what came and went is that of "
	                     : "one of the stacks that allocated most of what came and went is that of ",
	                r->rows.list))
		return;
	struct estimate part = report_share_interval(r, r->rows.list, FIGURE_ALLOCATED_BYTES);
	fprintf(t->out, ", with %s (%s .. %s) of %s", text_percent(part.value, share), text_percent(part.low, low),
	        text_percent(part.high, high), size_format(x.value, value));
}

/* Of whole sessions: the process, or group of them, that has most. */
static void put_largest_group(const struct text *t)
{
	const struct report *r = t->report;
	enum report_figure f = r->options.sort;
	char name[LINE_TEXT], share[16], low[16], high[16];

	if (!groups_of_sessions(r->options.by) || r->groups.count < 2 || !r->groups.list->inclusive[f].samples)
		return;
	const struct report_row row = report_thread(r, r->groups.list);
	struct estimate x = report_share_interval(r, &row, f);
	printable_copy(r->groups.list->name, name, sizeof name);
	fprintf(t->out, ";\n%s%s%s %s %s", t->bold, name, t->plain, report_is_live(f) ? "holds" : "allocated",
	        text_percent(x.value, share));
	if (x.low < x.high)
		fprintf(t->out, " (%s .. %s)", text_percent(x.low, low), text_percent(x.high, high));
	fputs(" of it", t->out);
}

void text_verdict(const struct text *t)
{
	const struct report *r = t->report;
	enum report_figure f = report_is_live(r->options.sort) ? FIGURE_LIVE_BYTES : FIGURE_ALLOCATED_BYTES;
	enum trust_value trust = report_trust(r, f);
	struct estimate x = report_estimate(r, &r->total, f);
	char value[40], range[96], level[40];

	if (!t->labels || *t->labels) /* the first line has a blank one below it */
		putc('\n', t->out);
	if (r->options.leaks) {
		text_leaks_verdict(t, r->rows.count ? r->rows.list : NULL);
		return;
	}
	if (report_compares(r)) {
		text_growth_verdict(t);
		return;
	}
	if (trust == TRUST_UNKNOWN) {
		fputs("What was allocated, and what of it is live, is not known: nothing of it was seen, or frees are "
		      "not.\n",
		      t->out);
		return;
	}
	if (filter_any(&r->options.filter))
		fputs("Of what the filter keeps, ", t->out);
	else
		fputs(!report_is_live(f) ? "Since the attach, "
		      : r->options.files ? "Of the mappings of files since the attach, "
		                         : "Of what was allocated since the attach, ",
		      t->out);
	if (!r->total.sum[f].samples) {
		if (x.high > 0)
			fprintf(t->out, "no sample %s %s: it is less than %s%s", report_is_live(f) ? "is" : "was",
			        report_is_live(f) ? text_live_word(r) : "taken", size_format(x.high, value),
			        level_text(r, &x, level));
		else
			fprintf(t->out, "nothing %s %s", report_is_live(f) ? "is" : "was",
			        report_is_live(f) ? text_live_word(r) : text_allocated_word(r));
		put_busiest(t);
		fputs(".\n", t->out);
		return;
	}
	if (x.exact)
		fprintf(t->out, "exactly %s", size_format(x.value, value));
	else
		fprintf(t->out, "%s%s (%s%s)", hedge(trust), size_format(x.value, value), text_interval(f, &x, range),
		        level_text(r, &x, level));
	fprintf(t->out, " %s %s", report_is_live(f) && !r->options.at_ns ? "is still" : "was",
	        report_is_live(f) ? text_live_word(r) : text_allocated_word(r));
	put_deepest(t);
	put_largest(t);
	put_largest_group(t);
	fputs(".\n", t->out);
}

/* Blocks, of which there may be more than any sample shows. */
static const char *blocks_text(const struct estimate *count, bool files, char text[96])
{
	char value[40], low[40];
	int used = snprintf(text, 96, "%s %s", text_grouped(count->value, value),
	                    text_plural(count->value, files ? "mapping" : "block", files ? "mappings" : "blocks"));

	if (count->low < count->high || count->unseen > 0)
		snprintf(text + used, 96 - (size_t)used, " (%s or more)", text_grouped(count->low, low));
	return text;
}

const char *text_kept(double live, double allocated, char text[16])
{
	text[0] = 0;
	return allocated > 0 && live <= allocated * (1 + 1e-9) ? text_percent(live / allocated, text) : text;
}

void text_total(const struct text *t, const char *name, const struct report_row *row, enum report_figure bytes)
{
	const struct report *r = t->report;
	struct estimate x = report_estimate(r, row, bytes);
	struct estimate count = report_estimate(r, row, text_companion(bytes));
	const struct estimate_sum *allocated = &r->total.sum[FIGURE_ALLOCATED_BYTES];
	const char *mark = row == &r->beside ? "" : text_trust_mark(t, bytes);
	double seconds = text_seconds(r);
	char value[40], range[96], rate[40], share[16], many[96];

	bool narrow = t->columns < TOTAL_COLUMNS;
	fprintf(t->out, "  %-12s %s%9s%s   %-22s", name, t->bold, size_format(x.value, value), t->plain,
	        text_interval(bytes, &x, range));
	blocks_text(&count, r->options.files || row == &r->beside, many);
	if (!narrow)
		fprintf(t->out, "   %-*s", seconds > 0 ? 33 : 0, many);
	if (mark[0])
		fputs(mark, t->out); /* growth of what is no measured figure is none either */
	else if (seconds > 0)
		fprintf(t->out, " %9s/s", size_format(x.value / seconds, rate));
	if (!mark[0] && bytes == FIGURE_ALLOCATED_BYTES &&
	    text_kept(r->total.sum[FIGURE_LIVE_BYTES].value, allocated->value, share)[0])
		fprintf(t->out, "%s%s kept", seconds > 0 ? ", " : "   ", share);
	putc('\n', t->out);
	if (narrow)
		fprintf(t->out, "%27s%s\n", "", many);
}

/* What the kernel says of the same time. It counts what was freed of older blocks, too. */
static void put_kernel(const struct text *t)
{
	static const char *const words[] = {
		[KERNEL_CANNOT_TELL] = "too little, or what is live too uncertain, to compare",
		[KERNEL_AGREES] = "agrees",
		[KERNEL_LESS] = "less than is live: memory from before was used again, or not all was touched",
		[KERNEL_FREED] = "more than is live: what was seen and freed may not have been given back",
		[KERNEL_MORE] = "more than was seen",
	};
	const struct report_memory *m = &t->report->memory;
	char growth[40], most[40];

	if (!m->known || m->ended || m->mostly_unseen)
		return;
	text_amount(FIGURE_LIVE_BYTES, m->private_growth, growth);
	fprintf(t->out, "  the kernel says: %s%s private memory: %s", m->private_growth > 0 ? "+" : "", growth,
	        words[m->verdict]);
	/* That they agree is no more than the interval tells. */
	if (m->verdict == KERNEL_AGREES && m->not_live > MEMORY_NOISE_BYTES)
		fprintf(t->out, ", but for %s at most that may not be of it", size_format(m->not_live, most));
	putc('\n', t->out);
}

const char *text_resident_growth(const struct report_memory *m, char text[96])
{
	char shared[40], files[40];
	bool more = m->shared_growth > MEMORY_NOISE_BYTES;
	bool both = more && m->files_growth > MEMORY_NOISE_BYTES;

	text[0] = 0;
	if (more)
		snprintf(text, 96, "shared memory +%s%s", size_format(m->shared_growth, shared), both ? ", " : "");
	if (m->files_growth > MEMORY_NOISE_BYTES)
		snprintf(text + strlen(text), 96 - strlen(text), "files +%s", size_format(m->files_growth, files));
	return text;
}

/* What no allocator has, but is resident, too. */
static void put_resident(const struct text *t)
{
	char growth[96];

	if (text_resident_growth(&t->report->memory, growth)[0])
		fprintf(t->out, "  the kernel says: %s\n", growth);
}

/* Why there is no sum. */
static void put_why(const struct text *t)
{
	char why[DUMP_MEMORY_NAME_MAX];

	printable_copy(t->report->resident.why, why, sizeof why);
	fprintf(t->out, "  what the resident memory is, is not known: %s\n", why);
}

void text_totals(const struct text *t)
{
	putc('\n', t->out);
	char live[24];
	snprintf(live, sizeof live, t->report->options.at_ns ? "%s then" : "still %s", text_live_word(t->report));
	text_total(t, live, &t->report->total, FIGURE_LIVE_BYTES);
	text_total(t, text_allocated_word(t->report), &t->report->total, FIGURE_ALLOCATED_BYTES);
	text_beside_files(t);
	if (filter_any(&t->report->options.filter) || text_resident(t))
		return;
	put_kernel(t);
	put_resident(t);
	if (t->report->resident.why[0])
		put_why(t);
}

static void put_seen(const struct text *t, bool measured)
{
	const struct report *r = t->report;
	uint64_t low = UINT64_MAX, high = 0;
	char a[40], b[40], share[16];

	for (size_t i = 0; i < r->session_count; i++) {
		low = r->sessions[i].least_rate_bytes < low ? r->sessions[i].least_rate_bytes : low;
		high = r->sessions[i].largest_rate_bytes > high ? r->sessions[i].largest_rate_bytes : high;
	}
	const char *one = measured ? "one" : "One";
	fprintf(t->out, "\nSeen: only what was allocated meanwhile. %s", measured ? "Trust: measured, " : "");
	if (r->largest_rate <= 1)
		fprintf(t->out, "%s allocation", measured ? "every" : "Every");
	else if (low == high)
		fprintf(t->out, "%s sample per %s", one, size_format((double)high, a));
	else
		fprintf(t->out, "%s sample per %s to %s", one, size_format((double)low, a),
		        size_format((double)high, b));
	/* In what the limit is of: less CPU time than a fifth of a processor's counts as that. */
	if (r->session_count == 1 && !isnan(r->sessions[0].overhead)) {
		const struct recorded_session *s = &r->sessions[0];
		if (s->processor < DUMP_LOAD_MIN * s->overhead)
			fprintf(t->out, "; cost %s of a CPU", text_percent(s->processor, share));
		else
			fprintf(t->out, "; cost %s CPU", text_percent(fmin(1, s->overhead), share));
		if (s->mapping_overhead >= TEXT_MAPPINGS_MIN)
			fprintf(t->out, " + %s CPU for mappings", text_percent(s->mapping_overhead, share));
	}
	fprintf(t->out, "; %s lost.\n", text_grouped((double)report_lost(r), a));
}

void text_seen(const struct text *t)
{
	put_seen(t, false);
}

/* Whether a shell takes the name as it is, and it is short. */
static bool is_plain(const char *name)
{
	size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+-");

	return n && !name[n] && n <= NEXT_NAME_COLUMNS && name[0] != '-';
}

/* As --rate takes it. */
static const char *rate_option(double rate, char text[40])
{
	uint64_t bytes = (uint64_t)exp2(floor(log2(fmax(1, rate))));

	if (bytes >= 1 << 20)
		snprintf(text, 40, "%" PRIu64 "M", bytes >> 20);
	else if (bytes >= 1 << 10)
		snprintf(text, 40, "%" PRIu64 "k", bytes >> 10);
	else
		snprintf(text, 40, "%" PRIu64, bytes);
	return text;
}

/* What brings as many samples as figures need that are known to a fifth. */
static void put_more(const struct text *t, const char *name)
{
	const struct report *r = t->report;
	const struct recorded_session *s = r->sessions;
	uint64_t samples = r->total.sum[r->options.sort].samples;
	double more = (double)ENOUGH_SAMPLES / (double)(samples ? samples : 1);
	char number[40], rate[40];

	if (!samples && r->total.sum[FIGURE_ALLOCATED_COUNT].samples >= ENOUGH_SAMPLES) {
		fprintf(t->out, "Next: memanalyze --sort allocated-bytes %s (what came and went)\n", name);
		return;
	}
	if (more <= 1 || r->largest_rate <= 1 || !s->duration_ns || filter_any(&r->options.filter))
		return;
	fprintf(t->out, "Next: %s %s %s few: record for %.0f s, or with --rate %s",
	        text_grouped((double)samples, number), text_samples(samples), text_plural((double)samples, "is", "are"),
	        (double)s->duration_ns / 1e9 * more, rate_option((double)r->largest_rate / more, rate));
	double takes = more * (s->rate_count ? s->max_overhead : fmin(s->overhead, s->processor / DUMP_LOAD_MIN));
	if (s->max_overhead > 0 && takes > s->max_overhead)
		fprintf(t->out, " --max-overhead %.0f", fmin(MOST_OVERHEAD, ceil(100 * takes)));
	putc('\n', t->out);
}

/* What to look at next, by the view that there is. */
static void put_views(const struct text *t, const char *name)
{
	const struct report_options *o = &t->report->options;

	if (o->files)
		fprintf(t->out,
		        "Next: memanalyze --mapped-files -o files.html %s (flame graph) | memanalyze %s (memory)\n",
		        name, name);
	else if (o->diff)
		fputs("Next: memanalyze -o growth.html --diff OLD NEW (flame graph) | memanalyze --leaks NEW\n",
		      t->out);
	else if (o->leaks)
		fprintf(t->out, "Next: memanalyze -o heap.html %s (flame graph) | memanalyze --timeline %s\n", name,
		        name);
	else if (o->since_ns)
		fprintf(t->out,
		        "Next: memanalyze -o growth.html --since %gs %s (flame graph) | memanalyze --leaks %s\n",
		        (double)o->since_ns / 1e9, name, name);
	else
		fprintf(t->out,
		        "Next: memanalyze -o heap.html %s (flame graph) | memanalyze --leaks %s | memanalyze --verbose "
		        "%s\n",
		        name, name, name);
}

void text_next(const struct text *t, const char *name)
{
	const struct report *r = t->report;

	put_seen(t, text_all_measured(r));
	if (r->session_count != 1 && !r->options.diff)
		return;
	put_views(t, is_plain(name) ? name : "DUMP");
	if (!report_compares(r) && !r->options.leaks)
		put_more(t, is_plain(name) ? name : "DUMP");
}
