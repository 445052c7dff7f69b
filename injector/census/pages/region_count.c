/* SPDX-License-Identifier: MIT */
#include "census/pages/region_count.h"

bool region_count_own(const struct region_count *c, size_t i, struct region *own)
{
	const char *thread = stack_owners_name(c->stacks, &c->maps->list[i]);

	if (!region_of_mapping(own, &c->maps->list[i]))
		return false;
	if (thread) {
		own->kind = REGION_STACK;
		own->name = thread;
	}
	return true;
}

/* Adds bytes of a run to what they belong to. */
static int add_bytes(struct region_count *c, struct region r, const struct page_run *run, uint64_t bytes, struct err *e)
{
	*(run->swapped ? &r.swapped : &r.resident) = bytes;
	*(run->swapped ? &c->swapped : &c->resident) += bytes;
	if (run->huge && !run->swapped) {
		r.huge = bytes;
		c->huge += bytes;
	}
	return region_table_add(c->table, &r, e);
}

/* A part of a run, which belongs to its mapping but for what is in extents. */
static int add_part(struct region_count *c, const struct region *own, const struct page_run *run, uint64_t start,
                    uint64_t end, struct err *e)
{
	const struct extents *x = c->extents;
	int rc = 0;

	for (size_t i = extents_from(x, start); start < end && rc == 0;) {
		const struct extent *next = i < x->count ? &x->list[i] : NULL;
		if (!next || next->start >= end)
			return add_bytes(c, *own, run, end - start, e);
		if (start < next->start) {
			rc = add_bytes(c, *own, run, next->start - start, e);
			start = next->start;
			continue;
		}
		const uint64_t until = next->end < end ? next->end : end;
		const struct region r = { .kind = next->kind, .name = next->name, .address = next->address };
		rc = add_bytes(c, r, run, until - start, e);
		start = until;
		i += start == next->end;
	}
	return rc;
}

static int add_mapping(struct region_count *c, size_t i, struct err *e)
{
	const struct mapping *m = &c->maps->list[i];
	struct region own;

	if (!region_count_own(c, i, &own))
		return 0;
	struct region whole = own;
	whole.mappings = 1;
	whole.reserved = m->end - m->start;
	int rc = region_table_add(c->table, &whole, e);
	for (size_t k = resident_pages_from(c->pages, m->start);
	     k < c->pages->count && c->pages->runs[k].start < m->end && rc == 0; k++) {
		const struct page_run *run = &c->pages->runs[k];
		rc = add_part(c, &own, run, run->start > m->start ? run->start : m->start,
		              run->end < m->end ? run->end : m->end, e);
	}
	return rc;
}

/* What is in extents has been counted as reserved by its mapping already. */
static int add_extents(struct region_count *c, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < c->extents->count && rc == 0; i++) {
		const struct extent *x = &c->extents->list[i];
		const struct region r = { .kind = x->kind,
			                  .name = x->name,
			                  .address = x->address,
			                  .mappings = 1,
			                  .reserved = x->end - x->start };
		rc = region_table_add(c->table, &r, e);
	}
	return rc;
}

int region_count(struct region_count *c, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < c->maps->count && rc == 0; i++)
		rc = add_mapping(c, i, e);
	rc = rc ?: add_extents(c, e);
	region_table_sum(c->table);
	return rc;
}
