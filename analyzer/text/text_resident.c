/* SPDX-License-Identifier: MIT */
/* The sum of the resident memory, in the text report. */
#include <math.h>
#include <string.h>

#include "base/printable.h"
#include "base/size.h"
#include "text/text.h"

#define LEAST_PART 0.01    /* of the largest: smaller terms are summed up */
#define LEAST_NAMED 0.2    /* of what fits: as much of it may not be in the stacks, and that is said */
#define REST_BYTES 1048576 /* what VmRSS itself is known to */
#define NAME_TEXT 48
#define WHAT_TEXT 128

/* What follows the last slash, without what the kernel puts around it. */
static const char *short_name(const char *name, char text[NAME_TEXT])
{
	const char *slash = strrchr(name, '/');

	printable_copy(slash ? slash + 1 : name, text, NAME_TEXT);
	return text;
}

static bool is_other(enum dump_memory_kind kind)
{
	return kind == DUMP_MEMORY_OTHER_LIVE || kind == DUMP_MEMORY_OTHER_FREED;
}

static const char *what_of(const struct report_resident *r, const struct resident_term *term, char text[WHAT_TEXT])
{
	static const char *const words[DUMP_MEMORY_KINDS] = {
		[DUMP_MEMORY_LIVE] = "live in malloc",
		[DUMP_MEMORY_FREED] = "freed, kept by malloc",
		[DUMP_MEMORY_MALLOC] = "malloc's heap, live or freed: see --census",
		[DUMP_MEMORY_PYTHON] = "small objects of Python",
		[DUMP_MEMORY_RUNTIME] = "heap of",
		[DUMP_MEMORY_STACKS] = "stacks of threads",
		[DUMP_MEMORY_ANONYMOUS] = "anonymous memory",
		[DUMP_MEMORY_CODE] = "generated code",
		[DUMP_MEMORY_DATA] = "variables of modules",
		[DUMP_MEMORY_FILES] = "files",
		[DUMP_MEMORY_SHARED] = "shared memory",
		[DUMP_MEMORY_KERNEL] = "the kernel's",
		[DUMP_MEMORY_UNKNOWN] = "several kinds that were not told apart",
		[DUMP_MEMORY_OTHER_LIVE] = "live in",
		[DUMP_MEMORY_OTHER_FREED] = "freed, kept by",
	};
	char name[NAME_TEXT];

	if (term->kind == DUMP_MEMORY_STACKS)
		snprintf(text, WHAT_TEXT, "stacks of %.0f %s", term->count_end,
		         text_plural(term->count_end, "thread", "threads"));
	else if (term->kind == DUMP_MEMORY_ANONYMOUS && !term->name[0] && r->allocator[0] && !r->allocator_known)
		snprintf(text, WHAT_TEXT, "anonymous memory, of %s and others", short_name(r->allocator, name));
	else if (term->kind == DUMP_MEMORY_FILES && term->name[0])
		snprintf(text, WHAT_TEXT, "file %s", short_name(term->name, name));
	else if (is_other(term->kind))
		snprintf(text, WHAT_TEXT, "%s %s", words[term->kind],
		         short_name(term->name[0] ? term->name : r->allocator, name));
	else
		snprintf(text, WHAT_TEXT, "%s%s%s", words[term->kind], term->name[0] ? " " : "",
		         short_name(term->name, name));
	return text;
}

/* " + 12.0 MiB", the first one without the plus. */
static void put_amount(const struct text *t, double value, bool first)
{
	char amount[SIZE_TEXT];

	fprintf(t->out, "%s%s",
	        first       ? (value < 0 ? " -" : " ")
	        : value < 0 ? " - "
	                    : " + ",
	        size_format(fabs(value), amount));
}

/* Is hardly any of what is beside the samples in terms that may also have what was freed? */
static bool tells_freed(const struct report_resident *r)
{
	double unknown = 0;

	for (size_t i = 0; i < r->count; i++)
		if (r->terms[i].live && r->terms[i].kind != DUMP_MEMORY_LIVE &&
		    r->terms[i].kind != DUMP_MEMORY_PYTHON && r->terms[i].kind != DUMP_MEMORY_OTHER_LIVE)
			unknown += r->terms[i].growth;
	return unknown < r->beside_low / 4;
}

/* How the stacks are to the terms that may hold what is live, behind the first of them. */
static void put_live(const struct text *t, double growth)
{
	const struct report_resident *r = &t->report->resident;
	const struct report_memory *m = &t->report->memory;
	char live[SIZE_TEXT], low[SIZE_TEXT], high[SIZE_TEXT];

	size_format(r->beside_low, low);
	size_format(r->beside_high, high);
	const char *where = t->report->options.by == BY_STACK ? "stacks below" : "samples";
	if (r->live == RESIDENT_LIVE_LESS)
		fprintf(t->out, " (%s: %s of it; %s%s%s %s)", where, size_format(m->live.value, live), low,
		        strcmp(low, high) != 0 ? " .. " : "", strcmp(low, high) != 0 ? high : "",
		        tells_freed(r) ? "not seen, or not in the session" : "freed and kept, or not seen");
	else if (growth - m->live.low > MEMORY_NOISE_BYTES && growth - m->live.low > LEAST_NAMED * growth)
		fprintf(t->out, " (%s, but for %s at most that may not be in them)", where,
		        size_format(growth - m->live.low, high));
	else
		fprintf(t->out, " (%s)", where);
}

static double largest_of(const struct report_resident *r)
{
	return fmax(fabs(r->growth), r->count ? fabs(r->terms[0].growth) : 0);
}

static void put_terms(const struct text *t)
{
	const struct report_resident *r = &t->report->resident;
	const double largest = largest_of(r);
	double marked = 0, others = 0;
	bool first = true, said = false;
	char what[WHAT_TEXT];

	for (size_t i = 0; i < r->count; i++)
		marked += r->terms[i].live ? r->terms[i].growth : 0;
	for (size_t i = 0; i < r->count; i++) {
		const struct resident_term *term = &r->terms[i];
		if (fabs(term->growth) < LEAST_PART * largest) {
			others += term->growth;
			continue;
		}
		put_amount(t, term->growth, first);
		fprintf(t->out, " %s", what_of(r, term, what));
		if (term->live && !said)
			put_live(t, marked);
		said |= term->live;
		first = false;
	}
	const bool rest = fabs(r->rest) >= fmax(REST_BYTES, LEAST_PART * largest);
	others += rest ? 0 : r->rest;
	if (fabs(others) >= LEAST_PART * largest / 2 || first) {
		put_amount(t, others, first);
		fputs(" other", t->out);
	}
	if (rest) {
		put_amount(t, r->rest, false);
		fputs(" not attributed", t->out);
	}
}

static const char *signed_size(double bytes, char text[SIZE_TEXT + 1])
{
	text[0] = bytes < 0 ? '-' : '+';
	size_format(fabs(bytes), text + 1);
	return text;
}

bool text_resident(const struct text *t)
{
	const struct report_resident *r = &t->report->resident;
	char growth[SIZE_TEXT + 1];

	if (!r->known)
		return false;
	signed_size(r->growth, growth);
	fprintf(t->out, "  %-12s %s%9s%s", "RSS", t->bold, growth, t->plain);
	if (largest_of(r) < REST_BYTES) {
		fputs(", no part of it by 1.00 MiB", t->out);
	} else {
		fputs(" =", t->out);
		put_terms(t);
	}
	if (fabs(r->swapped_growth) > MEMORY_NOISE_BYTES)
		fprintf(t->out, "; swapped %s", signed_size(r->swapped_growth, growth));
	putc('\n', t->out);
	if (r->live == RESIDENT_LIVE_MORE)
		fprintf(t->out,
		        "               the %s have at least %s more than that: in memory from before, used "
		        "again, or not resident\n",
		        t->report->options.by == BY_STACK ? "stacks below" : "samples",
		        size_format(r->beside_low, growth));
	return true;
}

void text_resident_facts(const struct text *t)
{
	const struct report_resident *r = &t->report->resident;
	char start[SIZE_TEXT], end[SIZE_TEXT], what[WHAT_TEXT];

	if (!filter_any(&t->report->options.filter))
		(void)text_resident(t);
	text_label(t, "resident");
	fprintf(t->out, "%9s -> %9s  RSS, of which\n", size_format(r->start, start), size_format(r->end, end));
	for (size_t i = 0; i < r->count; i++) {
		text_label(t, "");
		fprintf(t->out, "%9s -> %9s  %s\n", size_format(r->terms[i].start, start),
		        size_format(r->terms[i].end, end), what_of(r, &r->terms[i], what));
	}
}
