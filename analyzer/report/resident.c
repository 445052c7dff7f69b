/* SPDX-License-Identifier: MIT */
#include "report/resident.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NOISE_BYTES                                                                                                    \
	(4u << 20) /* as MEMORY_NOISE_BYTES: caches of threads, stacks, what was allocated beside the session */

const char *resident_kind_name(enum dump_memory_kind kind)
{
	static const char *const names[DUMP_MEMORY_KINDS] = {
		[DUMP_MEMORY_LOOK] = "",
		[DUMP_MEMORY_LIVE] = "malloc-live",
		[DUMP_MEMORY_FREED] = "malloc-freed",
		[DUMP_MEMORY_MALLOC] = "malloc",
		[DUMP_MEMORY_PYTHON] = "python",
		[DUMP_MEMORY_RUNTIME] = "runtime",
		[DUMP_MEMORY_STACKS] = "stacks",
		[DUMP_MEMORY_ANONYMOUS] = "anonymous",
		[DUMP_MEMORY_CODE] = "code",
		[DUMP_MEMORY_DATA] = "data",
		[DUMP_MEMORY_FILES] = "files",
		[DUMP_MEMORY_SHARED] = "shared",
		[DUMP_MEMORY_KERNEL] = "kernel",
		[DUMP_MEMORY_UNKNOWN] = "unknown",
		[DUMP_MEMORY_OTHER_LIVE] = "other-live",
		[DUMP_MEMORY_OTHER_FREED] = "other-freed",
	};

	return names[kind];
}

static int compare(const void *a, const void *b)
{
	const struct resident_term *x = a, *y = b;

	if (fabs(x->growth) != fabs(y->growth))
		return fabs(x->growth) > fabs(y->growth) ? -1 : 1;
	return x->kind < y->kind ? -1 : x->kind > y->kind;
}

/* Most of the growth is of one name. */
static const char *name_of(const struct memory_part *p)
{
	const double growth = p->end - p->start;

	return p->named_growth * growth > 0 && fabs(p->named_growth) > fabs(growth) / 2 ? p->name : "";
}

void resident_make(struct report_resident *r, const struct recorded_session *sessions, size_t count)
{
	struct memory_growth sum = sessions[0].memory;
	double terms = 0;

	*r = (struct report_resident){ .why = "", .allocator = "" };
	for (size_t i = 1; i < count; i++)
		memory_growth_add(&sum, &sessions[i].memory);
	for (size_t i = 0; i < count; i++) {
		if (!r->why[0])
			r->why = sessions[i].memory.why;
		const char *allocator = sessions[i].memory.allocator;
		if (allocator[0])
			r->allocator = !r->allocator[0] || !strcmp(r->allocator, allocator) ? allocator
			                                                                    : "several allocators";
	}
	r->known = sum.known;
	r->malloc_known = sum.malloc_known;
	r->allocator_known = sum.allocator_known;
	r->start = sum.rss_start;
	r->end = sum.rss_end;
	r->growth = r->end - r->start;
	r->swapped_growth = sum.swapped_end - sum.swapped_start;
	for (int k = 1; k < DUMP_MEMORY_KINDS; k++) {
		const struct memory_part *p = &sum.parts[k];
		if (!(p->start > 0) && !(p->end > 0))
			continue;
		r->terms[r->count++] = (struct resident_term){ .kind = (enum dump_memory_kind)k,
			                                       .start = p->start,
			                                       .end = p->end,
			                                       .growth = p->end - p->start,
			                                       .name = "",
			                                       .count_end = p->count_end };
		terms += p->end - p->start;
		for (size_t i = 0; i < count && name_of(p)[0]; i++) /* the session has it for longer than this sum */
			if (!strcmp(sessions[i].memory.parts[k].name, p->name))
				r->terms[r->count - 1].name = sessions[i].memory.parts[k].name;
	}
	r->rest = r->growth - terms;
	qsort(r->terms, r->count, sizeof *r->terms, compare);
}

static struct resident_term *term_of(struct report_resident *r, enum dump_memory_kind kind)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->terms[i].kind == kind)
			return &r->terms[i];
	return NULL;
}

#define KIND(kind) (1u << DUMP_MEMORY_##kind)

/* Growth of the kinds of a set. */
static double growth_of(struct report_resident *r, unsigned kinds)
{
	double sum = 0;

	for (size_t i = 0; i < r->count; i++)
		if (kinds & 1u << r->terms[i].kind)
			sum += r->terms[i].growth;
	return sum;
}

static void mark(struct report_resident *r, unsigned kinds)
{
	for (size_t i = 0; i < r->count; i++)
		r->terms[i].live = kinds & 1u << r->terms[i].kind && r->terms[i].growth > 0;
}

void resident_judge(struct report_resident *r, const struct estimate *live, double high, bool mmap)
{
	/* Where blocks may be: by malloc; by another allocator; of both; and of CPython. What was not told apart may be
	 * any of these. */
	enum { OF_MALLOC = KIND(LIVE) | KIND(MALLOC), OF_OTHER = KIND(OTHER_LIVE) | KIND(ANONYMOUS) };
	static const unsigned places[] = { OF_MALLOC,
		                           KIND(OTHER_LIVE),
		                           OF_OTHER,
		                           OF_MALLOC | OF_OTHER,
		                           OF_MALLOC | KIND(PYTHON),
		                           OF_MALLOC | OF_OTHER | KIND(PYTHON) };
	/* … and mappings that were made by hand. */
	static const unsigned by_hand[] = { KIND(UNKNOWN), KIND(UNKNOWN) | KIND(SHARED),
		                            KIND(UNKNOWN) | KIND(RUNTIME) | KIND(CODE),
		                            KIND(UNKNOWN) | KIND(SHARED) | KIND(RUNTIME) | KIND(CODE) };
	const size_t count = sizeof places / sizeof *places, sets = mmap ? sizeof by_hand / sizeof *by_hand : 1;
	unsigned largest = places[0] | KIND(UNKNOWN);

	if (!r->known)
		return;
	for (size_t i = 0; i < count * sets; i++) {
		const unsigned place = places[i % count] | by_hand[i / count];
		const double growth = growth_of(r, place);
		if (growth >= live->low - NOISE_BYTES && growth <= high + NOISE_BYTES) {
			mark(r, place);
			return;
		}
		if (growth > growth_of(r, largest))
			largest = place;
	}
	const double growth = growth_of(r, largest);
	r->live = growth > high ? RESIDENT_LIVE_LESS : RESIDENT_LIVE_MORE;
	r->beside_low = r->live == RESIDENT_LIVE_LESS ? growth - high : live->low - growth;
	r->beside_high = r->live == RESIDENT_LIVE_LESS ? growth - live->low : high - growth;
	if (r->live == RESIDENT_LIVE_LESS)
		mark(r, largest);
}

double resident_of_allocators(const struct report_resident *r)
{
	static const enum dump_memory_kind kinds[] = { DUMP_MEMORY_LIVE,      DUMP_MEMORY_MALLOC,
		                                       DUMP_MEMORY_PYTHON,    DUMP_MEMORY_OTHER_LIVE,
		                                       DUMP_MEMORY_ANONYMOUS, DUMP_MEMORY_UNKNOWN };
	double sum = 0;

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const struct resident_term *t = term_of((struct report_resident *)r, kinds[i]);
		sum += t ? t->growth : 0;
	}
	return sum;
}
