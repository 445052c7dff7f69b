/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/line_width.h"
#include "base/plural.h"
#include "base/printable.h"
#include "base/size.h"
#include "census/census_report.h"
#include "census/census_summary.h"
#include "census/census_text.h"

#define COLUMNS 80u
#define ROWS 12u
#define BLOCK_ROWS 5u
#define BLOCK_ROWS_ALL 40u
#define REGION_ROWS 40u
#define LEAST_SHARE 500u /* rows below a 500th are summed up */

void census_put_line(const struct printing *p, const char *text)
{
	char line[512];

	printable_copy(text, line, sizeof line);
	line[line_width_fit(line, COLUMNS)] = '\0';
	fprintf(p->out, "%s\n", line);
}

void census_put_sentence(const struct printing *p, const char *text)
{
	char line[512];

	printable_copy(text, line, sizeof line);
	line_width_put(p->out, 0, 2, line);
}

static void put_row(const struct printing *p, uint64_t resident, uint64_t swapped, const double *change,
                    const char *what)
{
	char size[SIZE_TEXT], other[SIZE_TEXT + 1], line[512];
	const uint64_t all = p->census->resident;
	int n = snprintf(line, sizeof line, "%11s %5.1f %%", size_format((double)resident, size),
	                 all ? 100 * (double)resident / (double)all : 0);

	if (p->swap)
		n += snprintf(line + n, sizeof line - (size_t)n, " %11s",
		              swapped ? size_format((double)swapped, other) : "");
	if (p->change)
		n += snprintf(line + n, sizeof line - (size_t)n, " %12s",
		              change ? size_format_change(*change, other) : "");
	snprintf(line + n, sizeof line - (size_t)n, "  %s", what);
	census_put_line(p, line);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void describe_malloc(const struct census *c, char *text, size_t size)
{
	const struct glibc_heap *g = &c->heap.glibc;
	const char *other = census_brk_allocator(c);

	if (!g->glibc.layout && other)
		snprintf(text, size, "heap (brk), of %s and others", other);
	else if (!g->glibc.layout)
		snprintf(text, size, "heap (brk), of an allocator that is not known");
	else if (g->glibc.release)
		snprintf(text, size, "malloc (glibc 2.%u%s, %zu arena%s)", g->glibc.release,
		         g->glibc.or_later ? " or later" : "", g->arena_count + 1, plural(g->arena_count + 1));
	else
		snprintf(text, size, "malloc (glibc, %zu arena%s)", g->arena_count + 1, plural(g->arena_count + 1));
}

static void describe(const struct census *c, const struct summary_row *r, char *text, size_t size)
{
	const char *name = base_name(r->name);

	switch (r->kind) {
	case SUMMARY_MALLOC: describe_malloc(c, text, size); break;
	case SUMMARY_PYTHON:
		snprintf(text, size, "Python objects of up to 512 bytes, %" PRIu64 " live", c->heap.pools.live_blocks);
		break;
	case SUMMARY_RUNTIME: snprintf(text, size, "heap of %s", name); break;
	case SUMMARY_ALLOCATOR: snprintf(text, size, "malloc (%s %s)", name, c->heap.other.release); break;
	case SUMMARY_STACKS:
		snprintf(text, size, "stacks of %" PRIu64 " thread%s", r->threads, plural(r->threads));
		break;
	case SUMMARY_ANONYMOUS:
		if (!name[0] && !c->heap.other.name && census_other_allocator(&c->maps)) {
			snprintf(text, size, "anonymous memory, of %s and others", census_other_allocator(&c->maps));
			break;
		}
		snprintf(text, size, "anonymous memory%s%s", name[0] ? " " : "", name);
		break;
	case SUMMARY_CODE: snprintf(text, size, "generated code"); break;
	case SUMMARY_DATA: snprintf(text, size, "data of %" PRIu64 " module%s", r->regions, plural(r->regions)); break;
	case SUMMARY_FILES:
		snprintf(text, size, "%" PRIu64 " file%s (code, constants)", r->regions, plural(r->regions));
		break;
	case SUMMARY_SHARED: snprintf(text, size, "shared memory %s", name); break;
	case SUMMARY_KERNEL: snprintf(text, size, "the kernel's"); break;
	}
}

static void put_head(const struct printing *p)
{
	const struct census *c = p->census;
	char resident[SIZE_TEXT], gap[SIZE_TEXT], swapped[SIZE_TEXT], change[SIZE_TEXT + 1], line[256];
	const uint64_t missing = census_gap(c);

	int n = snprintf(line, sizeof line, "%s (PID %d): %s resident, ", c->target->comm, c->target->pid,
	                 size_format((double)c->resident, resident));
	n += snprintf(line + n, sizeof line - (size_t)n,
	              census_adds_up(c) ? "all accounted for" : "VmRSS differs by %s",
	              size_format((double)missing, gap));
	if (c->swapped * 100 >= c->resident && c->swapped)
		n += snprintf(line + n, sizeof line - (size_t)n, "; %s swapped",
		              size_format((double)c->swapped, swapped));
	if (p->view->before)
		snprintf(line + n, sizeof line - (size_t)n, "; %s/min",
		         size_format_change(census_growth(c, p->view->before), change));
	census_put_sentence(p, line);
}

/* How long it takes to fill bytes. */
static void format_time(double minutes, char text[32])
{
	if (minutes < 100)
		snprintf(text, 32, "%.0f minutes", minutes);
	else if (minutes < 100 * 60)
		snprintf(text, 32, "%.0f hours", minutes / 60);
	else
		snprintf(text, 32, "%.0f days", minutes / 60 / 24);
}

static void put_limit(const struct printing *p)
{
	const double growth = p->view->before ? census_growth(p->census, p->view->before) : 0;
	char size[SIZE_TEXT], time[32];

	if (p->view->room >= CENSUS_LIMIT_LEAST)
		return;
	fprintf(p->out, "Its cgroup has %s left", size_format((double)p->view->room, size));
	if (growth > 0) {
		format_time((double)p->view->room / growth, time);
		fprintf(p->out, ": full in %s, as it grows now", time);
	}
	fprintf(p->out, ".\n");
}

/* What is in a row, which follows it. */
static void put_malloc(const struct printing *p)
{
	const struct census *c = p->census, *b = p->view->before;
	const struct heap_figures *f = &c->heap.figures;
	const double live = b ? (double)f->live - (double)b->heap.figures.live : 0;
	const double freed = b ? (double)census_freed(c) - (double)census_freed(b) : 0;
	char what[160], trim[SIZE_TEXT], size[SIZE_TEXT];

	if (!c->heap.glibc.glibc.layout)
		return;
	snprintf(what, sizeof what, "  live, %" PRIu64 " block%s", f->live_blocks, plural(f->live_blocks));
	put_row(p, f->live, 0, &live, what);
	snprintf(what, sizeof what, f->trim ? "  freed, kept: malloc_trim returns %s" : "  freed, kept",
	         size_format((double)f->trim, trim));
	put_row(p, census_freed(c), 0, &freed, what);
	if (f->kept * 50 > f->resident) {
		snprintf(what, sizeof what, "    %s of it on %" PRIu64 " page%s less than a quarter live",
		         size_format((double)f->kept, size), f->sparse_pages, plural(f->sparse_pages));
		fprintf(p->out, "%*s%s\n", (int)(20 + (p->swap ? 12 : 0) + (p->change ? 13 : 0)), "", what);
	}
}

static void put_allocator(const struct printing *p)
{
	const struct other_heap *h = &p->census->heap.other, *b = p->view->before ? &p->view->before->heap.other : NULL;
	const double live = b ? (double)h->live - (double)b->live : 0;
	const double freed = b ? (double)h->freed - (double)b->freed : 0;
	char what[160];

	snprintf(what, sizeof what, "  live, %" PRIu64 " block%s", h->live_blocks, plural(h->live_blocks));
	put_row(p, h->live, 0, &live, what);
	put_row(p, h->freed, 0, &freed, "  freed, kept");
}

static void put_summary(const struct printing *p, const struct summary *s, const struct summary *before)
{
	uint64_t resident = 0, swapped = 0;
	size_t others = 0;
	char what[256];

	fprintf(p->out, "\n%11s %7s%s%s  what\n", "resident", "", p->swap ? "     swapped" : "",
	        p->change ? "       change" : "");
	for (size_t i = 0; i < s->count; i++) {
		const struct summary_row *r = &s->rows[i];
		if (i >= ROWS || (r->resident + r->swapped) * LEAST_SHARE < p->census->resident) {
			resident += r->resident;
			swapped += r->swapped;
			others++;
			continue;
		}
		const struct summary_row *old = before ? summary_find(before, r)
		                                       : NULL; /* of few rows: it looks at all */
		const double change = before ? (double)r->resident - (old ? (double)old->resident : 0) : 0;
		describe(p->census, r, what, sizeof what);
		put_row(p, r->resident, r->swapped, &change, what);
		if (r->kind == SUMMARY_MALLOC)
			put_malloc(p);
		if (r->kind == SUMMARY_ALLOCATOR)
			put_allocator(p);
	}
	if (others) {
		snprintf(what, sizeof what, "%zu other row%s (--by region has them)", others, plural(others));
		put_row(p, resident, swapped, NULL, what);
	}
}

static void describe_region(const struct region *r, char *text, size_t size)
{
	const char *title = region_kind_title(r->kind), *name = base_name(r->name);

	if (r->kind == REGION_ARENA)
		snprintf(text, size, "arena %" PRIx64 ", %" PRIu64 " heap%s", r->address, r->mappings,
		         plural(r->mappings));
	else if (r->kind == REGION_STACK)
		snprintf(text, size, "%s of threads '%s', %" PRIu64, title, name, r->mappings);
	else
		snprintf(text, size, "%s%s%s", title, name[0] ? " " : "", name);
}

static void put_regions(const struct printing *p)
{
	const struct region_table *t = &p->census->regions;
	uint64_t resident = 0, swapped = 0;
	char what[512];
	size_t i = 0;

	fprintf(p->out, "\n%11s %7s%s  what\n", "resident", "", p->swap ? "     swapped" : "");
	for (; i < t->count && i < REGION_ROWS && (t->list[i].resident || t->list[i].swapped); i++) {
		describe_region(&t->list[i], what, sizeof what);
		put_row(p, t->list[i].resident, t->list[i].swapped, NULL, what);
	}
	const size_t shown = i;
	for (; i < t->count; i++) {
		resident += t->list[i].resident;
		swapped += t->list[i].swapped;
	}
	if (resident || swapped) {
		snprintf(what, sizeof what, "%zu other row%s (--json has them)", t->count - shown,
		         plural(t->count - shown));
		put_row(p, resident, swapped, NULL, what);
	}
}

/* What the figures are worth. */
static void put_trust(const struct printing *p)
{
	const struct census *c = p->census;
	const struct glibc_heap *g = &c->heap.glibc;
	char lost[SIZE_TEXT], huge[SIZE_TEXT];

	if (c->huge)
		fprintf(p->out, "%s of it is in huge pages.\n", size_format((double)c->huge, huge));
	if (c->stacks.unknown)
		fprintf(p->out, "The stacks of %zu of %zu threads are not known; they count as anonymous.\n",
		        c->stacks.unknown, c->stacks.threads);
	if (c->heap.other.lost_bytes || c->heap.other.over)
		fprintf(p->out, "Of %s's memory %s%s not known.\n", c->heap.other.name,
		        size_format((double)c->heap.other.lost_bytes, lost),
		        c->heap.other.over ? " at least are" : " are");
	if (!g->glibc.layout && c->heap.other.name) {
		fprintf(p->out, "Trust: counted while it ran.\n");
		return;
	}
	if (!g->glibc.layout) {
		fprintf(p->out, "Trust: counted by page; what is live in the heap is not known.\n");
		return;
	}
	fprintf(p->out, "Trust: counted while it ran");
	if (g->lost_bytes)
		fprintf(p->out, ", but for %s%s", size_format((double)g->lost_bytes, lost),
		        g->absent_bytes > g->lost_bytes / 2 ? ", mostly absent" : "");
	if (g->glibc.counts_mapped)
		fprintf(p->out, "; mapped blocks %" PRIu64 "/%" PRIu64, c->heap.mapped_count, g->glibc.mapped_count);
	if (g->contradictions)
		fprintf(p->out, "; %" PRIu64 " lists changed", g->contradictions);
	fprintf(p->out, ".\n");
	if (g->lists_unknown)
		fprintf(p->out, "Its release is not known: what is in tcaches and fastbins counts as live.\n");
	if (g->over || c->types.over)
		fprintf(p->out,
		        "Given up where it took too long: what was not walked counts as live, and has no type.\n");
}

static void put_next(const struct printing *p, const struct summary *s)
{
	const int pid = p->census->target->pid;
	const enum summary_kind kind = s->count ? s->rows[0].kind : SUMMARY_KERNEL;

	const uint64_t freed = census_freed(p->census), trim = p->census->heap.figures.trim;

	if (kind == SUMMARY_MALLOC && freed && freed >= p->census->heap.figures.live && trim >= freed / 2)
		fprintf(p->out, "Next: malloc_trim(0), which the program has to call, returns it to the system.\n");
	else if (kind == SUMMARY_MALLOC && freed && freed >= p->census->heap.figures.live &&
	         p->view->by != CENSUS_BY_SIZE)
		fprintf(p->out, "Next: memattach --census --by size %d (which blocks keep pages)\n", pid);
	else if (!p->view->before)
		fprintf(p->out, "Next: memattach --census --for 1m %d (does it grow?)\n", pid);
	else
		fprintf(p->out, "Next: memattach -d 3m %d (who allocates what is added)\n", pid);
}

int census_text(const struct census *c, const struct census_view *view, struct err *e)
{
	struct printing p = { c, view, view->out, c->swapped > 0, view->before && view->by == CENSUS_BY_ALL };
	struct summary s = { 0 }, before = { 0 };
	char verdict[SUMMARY_VERDICT];

	int rc = summary_make(&s, c, e);
	if (rc == 0 && view->before)
		rc = summary_make(&before, view->before, e);
	if (rc == 0) {
		summary_verdict(&s, c, verdict);
		put_head(&p);
		census_put_sentence(&p, verdict);
		put_limit(&p);
		if (view->by == CENSUS_BY_REGION)
			put_regions(&p);
		if (view->by == CENSUS_BY_ALL)
			put_summary(&p, &s, view->before ? &before : NULL);
		if (view->by == CENSUS_BY_ALL || view->by == CENSUS_BY_SIZE) {
			census_put_sizes(&p, view->by == CENSUS_BY_SIZE ? BLOCK_ROWS_ALL : BLOCK_ROWS);
			census_put_other_sizes(&p, view->by == CENSUS_BY_SIZE ? BLOCK_ROWS_ALL : BLOCK_ROWS);
		}
		if (view->by == CENSUS_BY_ALL || view->by == CENSUS_BY_TYPE)
			rc = census_put_types(&p, view->by == CENSUS_BY_TYPE ? BLOCK_ROWS_ALL : BLOCK_ROWS, e);
		if (view->by == CENSUS_BY_ALL || view->by == CENSUS_BY_HOLDER)
			census_put_holders(&p, view->by == CENSUS_BY_HOLDER ? BLOCK_ROWS_ALL : BLOCK_ROWS);
		rc = rc ?: census_put_lost(&p, view->by == CENSUS_BY_TYPE ? BLOCK_ROWS_ALL : BLOCK_ROWS, e);
		fputc('\n', p.out);
		put_trust(&p);
		put_next(&p, &s);
	}
	summary_free(&s);
	summary_free(&before);
	return rc;
}
