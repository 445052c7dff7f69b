/* SPDX-License-Identifier: MIT */
#include "census/census_summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/plural.h"
#include "base/printable.h"
#include "base/size.h"

static enum summary_kind kind_of(enum region_kind kind)
{
	switch (kind) {
	case REGION_HEAP:
	case REGION_ARENA:
	case REGION_MAPPED: return SUMMARY_MALLOC;
	case REGION_PYTHON: return SUMMARY_PYTHON;
	case REGION_RUNTIME: return SUMMARY_RUNTIME;
	case REGION_ALLOCATOR: return SUMMARY_ALLOCATOR;
	case REGION_STACK: return SUMMARY_STACKS;
	case REGION_CODE: return SUMMARY_CODE;
	case REGION_DATA: return SUMMARY_DATA;
	case REGION_FILE: return SUMMARY_FILES;
	case REGION_SHARED: return SUMMARY_SHARED;
	case REGION_KERNEL: return SUMMARY_KERNEL;
	default: return SUMMARY_ANONYMOUS;
	}
}

static bool has_names(enum summary_kind kind)
{
	return kind == SUMMARY_RUNTIME || kind == SUMMARY_ALLOCATOR || kind == SUMMARY_ANONYMOUS ||
	       kind == SUMMARY_SHARED;
}

const struct summary_row *summary_find(const struct summary *s, const struct summary_row *like)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->rows[i].kind == like->kind && !strcmp(s->rows[i].name, like->name))
			return &s->rows[i];
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const struct summary_row *x = a, *y = b;

	if (x->resident + x->swapped != y->resident + y->swapped)
		return x->resident + x->swapped > y->resident + y->swapped ? -1 : 1;
	return x->kind < y->kind ? -1 : x->kind > y->kind ? 1 : strcmp(x->name, y->name);
}

/* Names are one row each already, so only kinds without them are looked for. */
static struct summary_row *row_of(struct summary *s, enum summary_kind kind, const char *name)
{
	for (size_t i = 0; i < s->count && !has_names(kind); i++)
		if (s->rows[i].kind == kind)
			return &s->rows[i];
	if (!grow_list(s->rows, s->count))
		return NULL;
	s->rows[s->count] = (struct summary_row){ .kind = kind, .name = has_names(kind) ? name : "" };
	return &s->rows[s->count++];
}

int summary_make(struct summary *s, const struct census *c, struct err *e)
{
	*s = (struct summary){ 0 };
	for (size_t i = 0; i < c->regions.count; i++) {
		const struct region *r = &c->regions.list[i];
		if (!r->resident && !r->swapped)
			continue;
		struct summary_row *row = row_of(s, kind_of(r->kind), r->name);
		if (!row)
			return err_set(e, ENOMEM, "no memory for a summary");
		row->resident += r->resident;
		row->swapped += r->swapped;
		row->regions++;
		row->threads += r->kind == REGION_STACK ? r->mappings : 0;
	}
	if (s->count)
		qsort(s->rows, s->count, sizeof *s->rows, compare);
	return 0;
}

void summary_free(struct summary *s)
{
	free(s->rows);
	*s = (struct summary){ 0 };
}

const char *census_other_allocator(const struct maps *maps)
{
	static const char *const names[] = { "jemalloc", "tcmalloc", "mimalloc" };

	for (size_t i = 0; i < maps->count; i++) {
		const char *slash = strrchr(maps->list[i].path, '/');
		for (size_t k = 0; slash && !strncmp(slash, "/lib", 4) && k < sizeof names / sizeof *names; k++)
			if (!strncmp(slash + 4, names[k], strlen(names[k])))
				return names[k];
	}
	return NULL;
}

const char *census_brk_allocator(const struct census *c)
{
	return c->heap.other.name ? c->heap.other.name : census_other_allocator(&c->maps);
}

uint64_t census_freed(const struct census *c)
{
	return c->heap.figures.beside_live + c->heap.figures.whole;
}

/* The size of which there is most. */
static unsigned largest_size(const struct heap_figures *f)
{
	unsigned best = 0;

	for (unsigned i = 1; i < SIZE_CLASSES; i++)
		if (f->sizes[i].bytes > f->sizes[best].bytes)
			best = i;
	return best;
}

static void say_live(const struct heap_figures *f, const char *share, char text[SUMMARY_VERDICT])
{
	const unsigned size = largest_size(f);
	const double part = f->live_bytes ? 100 * (double)f->sizes[size].bytes / (double)f->live_bytes : 0;
	char range[SIZE_RANGE];

	if (part < 10)
		snprintf(text, SUMMARY_VERDICT, "%s is live in malloc, in blocks of many sizes.", share);
	else
		snprintf(text, SUMMARY_VERDICT, "%s is live in malloc: %.0f %% in %" PRIu64 " block%s of %s.", share,
		         part, f->sizes[size].blocks, plural(f->sizes[size].blocks),
		         heap_size_class_format(size, range));
}

static void say_allocator(const struct other_heap *h, const char *share, char text[SUMMARY_VERDICT])
{
	char size[SIZE_TEXT];

	if (h->freed >= h->live)
		snprintf(text, SUMMARY_VERDICT, "%s was freed and is kept by %s.", size_format((double)h->freed, size),
		         h->name);
	else
		snprintf(text, SUMMARY_VERDICT, "%s is live in %s: %" PRIu64 " block%s of %s on average.", share,
		         h->name, h->live_blocks, plural(h->live_blocks),
		         size_format(h->live_blocks ? (double)h->live_bytes / (double)h->live_blocks : 0, size));
}

void summary_verdict(const struct summary *s, const struct census *c, char text[SUMMARY_VERDICT])
{
	const struct summary_row *top = s->count ? s->rows : NULL;
	const struct heap_figures *f = &c->heap.figures;
	const uint64_t freed = census_freed(c);
	char share[32], name[48], size[SIZE_TEXT], trim[SIZE_TEXT];

	text[0] = '\0';
	if (!top || !c->resident)
		return;
	snprintf(share, sizeof share, "%s of it (%.0f %%)",
	         top->resident * 2 >= c->resident ? "Most" : "The largest part",
	         100 * (double)top->resident / (double)c->resident);
	printable_copy(top->name, name, sizeof name);
	switch (top->kind) {
	case SUMMARY_MALLOC:
		if (!c->heap.glibc.glibc.layout && census_brk_allocator(c))
			snprintf(text, SUMMARY_VERDICT, "%s is the heap (brk), of %s and others.", share,
			         census_brk_allocator(c));
		else if (!c->heap.glibc.glibc.layout)
			snprintf(text, SUMMARY_VERDICT, "%s is the heap; its allocator is not known.", share);
		else if (freed >= f->live)
			snprintf(text, SUMMARY_VERDICT,
			         "%s was freed and is kept by malloc; malloc_trim(0) would return %s.",
			         size_format((double)freed, size), size_format((double)f->trim, trim));
		else
			say_live(f, share, text);
		break;
	case SUMMARY_PYTHON: snprintf(text, SUMMARY_VERDICT, "%s is small objects of Python.", share); break;
	case SUMMARY_RUNTIME: snprintf(text, SUMMARY_VERDICT, "%s is the heap of %s.", share, name); break;
	case SUMMARY_ALLOCATOR: say_allocator(&c->heap.other, share, text); break;
	case SUMMARY_STACKS:
		snprintf(text, SUMMARY_VERDICT, "%s is stacks of %" PRIu64 " threads.", share, top->threads);
		break;
	case SUMMARY_SHARED: snprintf(text, SUMMARY_VERDICT, "%s is shared memory, %s.", share, name); break;
	case SUMMARY_FILES:
		snprintf(text, SUMMARY_VERDICT, "%s is files: code, constants, what is read.", share);
		break;
	case SUMMARY_DATA: snprintf(text, SUMMARY_VERDICT, "%s is variables of modules.", share); break;
	case SUMMARY_CODE: snprintf(text, SUMMARY_VERDICT, "%s is generated code.", share); break;
	case SUMMARY_KERNEL: break;
	case SUMMARY_ANONYMOUS:
		if (!name[0] && census_other_allocator(&c->maps))
			snprintf(text, SUMMARY_VERDICT, "%s is anonymous memory, of %s and others.", share,
			         census_other_allocator(&c->maps));
		else
			snprintf(text, SUMMARY_VERDICT, "%s is anonymous memory%s%s of no allocator that is known.",
			         share, name[0] ? " " : "", name);
		break;
	}
}
