/* SPDX-License-Identifier: MIT */
#include "input/memory/memory_growth.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define ROWS_MAX (2 * (DUMP_MEMORY_ROWS_MAX + DUMP_MEMORY_KINDS)) /* more are no rows of memattach's */

#define OTHER_LEAST 1048576.0

/* A name of a kind, at both moments. */
struct named {
	uint16_t kind;
	double start, end;
	char name[DUMP_MEMORY_NAME_MAX];
};

struct reading {
	struct memory_growth *growth;
	struct named *list;
	size_t count, rows;
	uint64_t flags[2]; /* of the looks */
	bool seen[2];
};

static struct named *named_of(struct reading *r, const struct dump_memory *row)
{
	char name[DUMP_MEMORY_NAME_MAX];

	snprintf(name, sizeof name, "%s", row->name);
	for (size_t i = 0; i < r->count; i++)
		if (r->list[i].kind == row->kind && !strcmp(r->list[i].name, name))
			return &r->list[i];
	if (!grow_list(r->list, r->count))
		return NULL;
	struct named *n = &r->list[r->count++];
	*n = (struct named){ .kind = row->kind };
	memcpy(n->name, name, sizeof name);
	return n;
}

static int on_row(void *arg, const struct dump_memory *row)
{
	struct reading *r = arg;
	struct memory_part *part = &r->growth->parts[row->kind];
	const bool end = row->moment == DUMP_MEMORY_END;

	if (r->rows++ >= ROWS_MAX)
		return 0;
	struct named *n = named_of(r, row);
	if (!n)
		return -ENOMEM;
	*(end ? &n->end : &n->start) += (double)row->resident;
	*(end ? &part->end : &part->start) += (double)row->resident;
	*(end ? &r->growth->swapped_end : &r->growth->swapped_start) += (double)row->swapped;
	part->count_end += end ? (double)row->count : 0;
	return 0;
}

static int on_look(void *arg, const struct dump_look *look)
{
	struct reading *r = arg;
	struct memory_growth *g = r->growth;
	const bool end = look->moment == DUMP_MEMORY_END;

	r->seen[end] = true;
	r->flags[end] = look->flags;
	*(end ? &g->rss_end : &g->rss_start) = (double)look->rss;
	if (look->text[0])
		snprintf(look->flags & DUMP_LOOK_FAILED ? g->why : g->allocator, DUMP_MEMORY_NAME_MAX, "%s",
		         look->text);
	return 0;
}

static void merge_into(struct memory_growth *g, enum dump_memory_kind into, enum dump_memory_kind from)
{
	struct memory_part *a = &g->parts[into], *b = &g->parts[from];

	if (!(b->start > 0) && !(b->end > 0))
		return;
	a->start += b->start;
	a->end += b->end;
	a->named_growth = 0;
	a->name[0] = '\0';
	*b = (struct memory_part){ 0 };
}

/* What one of the looks could not tell apart is not told apart. */
static void merge_unknown(struct memory_growth *g)
{
	static const enum dump_memory_kind of_malloc[] = { DUMP_MEMORY_LIVE, DUMP_MEMORY_FREED };
	static const enum dump_memory_kind of_other[] = { DUMP_MEMORY_OTHER_LIVE, DUMP_MEMORY_OTHER_FREED };
	static const enum dump_memory_kind content[] = { DUMP_MEMORY_MALLOC, DUMP_MEMORY_PYTHON, DUMP_MEMORY_RUNTIME };
	static const enum dump_memory_kind of_process[] = { DUMP_MEMORY_LIVE,       DUMP_MEMORY_FREED,
		                                            DUMP_MEMORY_MALLOC,     DUMP_MEMORY_PYTHON,
		                                            DUMP_MEMORY_RUNTIME,    DUMP_MEMORY_STACKS,
		                                            DUMP_MEMORY_ANONYMOUS,  DUMP_MEMORY_CODE,
		                                            DUMP_MEMORY_OTHER_LIVE, DUMP_MEMORY_OTHER_FREED };
	const struct memory_part *unknown = &g->parts[DUMP_MEMORY_UNKNOWN];
	const bool any_unknown = unknown->start > 0 || unknown->end > 0;

	for (size_t i = 0; i < sizeof of_malloc / sizeof *of_malloc && !g->malloc_known; i++)
		merge_into(g, DUMP_MEMORY_MALLOC, of_malloc[i]);
	if (g->malloc_known) /* of one that has a heap by brk(2) and is none of glibc's before or after */
		merge_into(g, DUMP_MEMORY_LIVE, DUMP_MEMORY_MALLOC);
	for (size_t i = 0; i < sizeof of_other / sizeof *of_other && !g->allocator_known; i++)
		merge_into(g, DUMP_MEMORY_ANONYMOUS, of_other[i]);
	for (size_t i = 0; i < sizeof content / sizeof *content && !g->content_known; i++)
		merge_into(g, DUMP_MEMORY_ANONYMOUS, content[i]);
	for (size_t i = 0; i < sizeof of_process / sizeof *of_process && any_unknown; i++)
		merge_into(g, DUMP_MEMORY_UNKNOWN, of_process[i]);
}

/* The name of each part that says most of its growth. Where names were left out one may only seem to be new. */
static void find_names(struct reading *r)
{
	const bool cut = (r->flags[0] | r->flags[1]) & DUMP_LOOK_NAMES_CUT;

	for (size_t i = 0; i < r->count; i++) {
		const struct named *n = &r->list[i];
		struct memory_part *part = &r->growth->parts[n->kind];
		if (!n->name[0] || (cut && (!(n->start > 0) || !(n->end > 0))) ||
		    fabs(n->end - n->start) <= fabs(part->named_growth))
			continue;
		part->named_growth = n->end - n->start;
		memcpy(part->name, n->name, sizeof part->name);
	}
}

/* An allocator that has hardly anything is not found: then there is as little of what it may be in. */
static bool other_is_known(const struct reading *r, bool end)
{
	const struct memory_part *a = &r->growth->parts[DUMP_MEMORY_ANONYMOUS];

	return r->flags[end] & DUMP_LOOK_OTHER || (!(r->flags[end] & (DUMP_LOOK_PAGES_CUT | DUMP_LOOK_CONTENT_CUT)) &&
	                                           (end ? a->end : a->start) < OTHER_LEAST);
}

int memory_growth_read(struct memory_growth *g, struct dump *dump)
{
	struct reading r = { .growth = g };
	const struct dump_memory_visitor visitor = { on_row, on_look, &r };

	*g = (struct memory_growth){ 0 };
	int rc = dump_each_memory(dump, &visitor);
	const uint64_t both = r.flags[0] & r.flags[1], any = r.flags[0] | r.flags[1];
	g->known = r.seen[0] && r.seen[1] && !(any & DUMP_LOOK_FAILED) && r.rows <= ROWS_MAX;
	g->content_known = !(any & DUMP_LOOK_CONTENT_CUT);
	g->allocator_known = any & DUMP_LOOK_OTHER && (other_is_known(&r, 0) && other_is_known(&r, 1));
	g->malloc_known = both & DUMP_LOOK_MALLOC && g->content_known;
	if (rc == 0) {
		find_names(&r);
		merge_unknown(g);
	}
	free(r.list);
	return rc;
}

void memory_growth_add(struct memory_growth *sum, const struct memory_growth *g)
{
	sum->known = sum->known && g->known;
	sum->rss_start += g->rss_start;
	sum->rss_end += g->rss_end;
	sum->swapped_start += g->swapped_start;
	sum->swapped_end += g->swapped_end;
	if (!sum->why[0])
		memcpy(sum->why, g->why, sizeof sum->why);
	sum->allocator_known = (sum->allocator_known || !sum->allocator[0]) && (g->allocator_known || !g->allocator[0]);
	if (!sum->allocator[0])
		memcpy(sum->allocator, g->allocator, sizeof sum->allocator);
	else if (g->allocator[0] && strcmp(g->allocator, sum->allocator) != 0)
		snprintf(sum->allocator, sizeof sum->allocator, "several allocators");
	for (int k = 0; k < DUMP_MEMORY_KINDS; k++) {
		struct memory_part *a = &sum->parts[k];
		const struct memory_part *b = &g->parts[k];
		a->start += b->start;
		a->end += b->end;
		a->count_end += b->count_end;
		if (fabs(b->named_growth) > fabs(a->named_growth)) {
			a->named_growth = b->named_growth;
			memcpy(a->name, b->name, sizeof a->name);
		}
	}
	sum->malloc_known = sum->malloc_known && g->malloc_known;
	sum->content_known = sum->content_known && g->content_known;
	merge_unknown(sum);
}
