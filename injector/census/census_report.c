/* SPDX-License-Identifier: MIT */
#include "census/census_report.h"

#include <stdio.h>

#include "base/json.h"

double census_growth(const struct census *c, const struct census *before)
{
	const double minutes = (double)(c->when_ns - before->when_ns) / 60e9;

	return minutes > 0 ? ((double)c->resident - (double)before->resident) / minutes : 0;
}

static void put_region(struct json *j, const struct region *r)
{
	json_object_line(j, NULL);
	json_string(j, "kind", region_kind_name(r->kind));
	json_string(j, "name", r->name);
	if (r->address)
		json_hex(j, "address", r->address);
	json_unsigned(j, "mappings", r->mappings);
	json_unsigned(j, "reserved", r->reserved);
	json_unsigned(j, "resident", r->resident);
	json_unsigned(j, "huge", r->huge);
	json_unsigned(j, "swapped", r->swapped);
	json_object_end(j);
}

static void put_sizes(struct json *j, const struct heap_figures *f)
{
	json_array(j, "sizes");
	for (unsigned i = 0; i < SIZE_CLASSES; i++) {
		if (!f->sizes[i].blocks)
			continue;
		json_object_line(j, NULL);
		json_unsigned(j, "chunk_bytes_least", heap_size_class_least(i));
		json_unsigned(j, "chunk_bytes_most", heap_size_class_most(i));
		json_unsigned(j, "blocks", f->sizes[i].blocks);
		json_unsigned(j, "bytes", f->sizes[i].bytes);
		json_unsigned(j, "keeps", f->sizes[i].kept);
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_malloc(struct json *j, const struct census_heap *h)
{
	const struct glibc_heap *g = &h->glibc;
	const struct heap_figures *f = &h->figures;

	json_object(j, "malloc");
	json_unsigned(j, "glibc_release", g->glibc.release);
	json_flag(j, "or_later", g->glibc.or_later);
	json_unsigned(j, "arenas", g->arena_count + 1);
	json_unsigned(j, "resident", f->resident);
	json_unsigned(j, "live_blocks", f->live_blocks);
	json_unsigned(j, "live_bytes", f->live_bytes);
	json_unsigned(j, "live_resident", f->live);
	json_unsigned(j, "freed_beside_live", f->beside_live);
	json_unsigned(j, "freed_whole_pages", f->whole);
	json_unsigned(j, "freed_at_top", f->top);
	json_unsigned(j, "in_fastbins", g->fast.bytes);
	json_unsigned(j, "in_tcaches", g->cached.bytes);
	json_unsigned(j, "trim_returns", f->trim);
	json_unsigned(j, "sparse_pages", f->sparse_pages);
	json_unsigned(j, "kept_by_sparse_pages", f->kept);
	json_unsigned(j, "mapped_blocks", h->mapped_count);
	json_unsigned(j, "mapped_bytes", h->mapped_bytes);
	if (g->glibc.counts_mapped)
		json_unsigned(j, "mapped_blocks_by_malloc", g->glibc.mapped_count);
	json_unsigned(j, "arena_bytes_by_malloc", g->system_bytes);
	json_unsigned(j, "arena_bytes_walked", g->walked_bytes);
	json_unsigned(j, "lost_bytes", g->lost_bytes);
	json_unsigned(j, "lost_bytes_not_resident", g->absent_bytes);
	json_unsigned(j, "resyncs", g->resyncs);
	json_unsigned(j, "contradictions", g->contradictions);
	json_flag(j, "lists_unknown", g->lists_unknown);
	json_flag(j, "given_up", g->over);
	put_sizes(j, f);
	json_object_end(j);
}

static void put_python(struct json *j, const struct python_pools *p)
{
	json_object_line(j, "python");
	json_unsigned(j, "pools", p->pools);
	json_unsigned(j, "pool_bytes", p->pool_bytes);
	json_unsigned(j, "live_blocks", p->live_blocks);
	json_unsigned(j, "live_bytes", p->live_bytes);
	json_object_end(j);
}

static void put_other(struct json *j, const struct other_heap *h)
{
	json_object_line(j, "allocator");
	json_string(j, "name", h->name);
	json_string(j, "release", h->release);
	json_unsigned(j, "live_blocks", h->live_blocks);
	json_unsigned(j, "live_bytes", h->live_bytes);
	json_unsigned(j, "live_resident", h->live);
	json_unsigned(j, "freed_resident", h->freed);
	json_unsigned(j, "in_caches", h->cached_bytes);
	json_unsigned(j, "lost_bytes", h->lost_bytes);
	json_flag(j, "given_up", h->over);
	json_array(j, "sizes");
	for (unsigned i = 0; i < h->size_count; i++) {
		json_object_line(j, NULL);
		json_unsigned(j, "block_bytes", h->sizes[i].bytes);
		json_unsigned(j, "blocks", h->sizes[i].blocks);
		json_unsigned(j, "keeps", h->sizes[i].kept);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

static void put_types(struct json *j, const struct block_types *t)
{
	json_array(j, "types");
	for (uint32_t i = 0; i < t->names.count; i++) {
		if (!t->list[i].blocks)
			continue;
		json_object_line(j, NULL);
		json_string(j, "name", block_types_name(t, i));
		json_string(j, "by", type_source_name(t->list[i].source));
		json_unsigned(j, "blocks", t->list[i].blocks);
		json_unsigned(j, "bytes", t->list[i].bytes);
		json_object_end(j);
	}
	json_array_end(j);
	json_flag(j, "more_types", t->full);
}

static void put_holder(struct json *j, const char *name, const struct holder *h)
{
	json_object_line(j, NULL);
	json_string(j, "name", name);
	json_unsigned(j, "blocks", h->blocks);
	json_unsigned(j, "bytes", h->bytes);
	json_array(j, "path");
	for (unsigned i = 0; i < h->step_count; i++) {
		json_object(j, NULL);
		json_string(j, "what", h->steps[i].what);
		json_unsigned(j, "blocks", h->steps[i].blocks);
		json_object_end(j);
	}
	json_array_end(j);
	json_unsigned(j, "blocks_below", h->below);
	json_object_end(j);
}

static void put_lost(struct json *j, const struct census_lost *lost)
{
	json_object_line(j, "unreachable");
	json_flag(j, "known", lost->known);
	if (lost->why[0])
		json_string(j, "why", lost->why);
	json_number(j, "stopped_ms", (double)lost->stopped_ns / 1e6);
	json_flag(j, "cloned", lost->cloned);
	if (lost->not_cloned[0])
		json_string(j, "why_not_cloned", lost->not_cloned);
	if (lost->known) {
		json_unsigned(j, "blocks", lost->figures.lost_blocks);
		json_unsigned(j, "bytes", lost->figures.lost_bytes);
		json_unsigned(j, "of_blocks", lost->figures.live_blocks);
		json_unsigned(j, "of_bytes", lost->figures.live_bytes);
		put_types(j, &lost->types);
	}
	json_object_end(j);
}

void census_json(const struct census *c, const struct census_view *view)
{
	struct json j = { .out = view->out };

	json_object(&j, NULL);
	json_unsigned(&j, "pid", (uint64_t)c->target->pid);
	json_string(&j, "command", c->target->comm);
	json_unsigned(&j, "vm_rss_before", c->rss_before);
	json_unsigned(&j, "vm_rss_after", c->rss_after);
	if (c->rss_exact)
		json_unsigned(&j, "rss_exact", c->rss_exact);
	json_unsigned(&j, "resident", c->resident);
	json_unsigned(&j, "huge", c->huge);
	json_unsigned(&j, "swapped", c->swapped);
	if (view->room < CENSUS_LIMIT_LEAST)
		json_unsigned(&j, "cgroup_left", view->room);
	if (view->before) {
		json_number(&j, "seconds", (double)(c->when_ns - view->before->when_ns) / 1e9);
		json_unsigned(&j, "resident_before", view->before->resident);
		json_number(&j, "growth_per_minute", census_growth(c, view->before));
	}
	json_unsigned(&j, "threads", c->stacks.threads);
	json_unsigned(&j, "threads_without_stack", c->stacks.unknown);
	if (c->heap.glibc.glibc.layout)
		put_malloc(&j, &c->heap);
	if (c->heap.other.name)
		put_other(&j, &c->heap.other);
	if (c->heap.pools.pools)
		put_python(&j, &c->heap.pools);
	put_types(&j, &c->types);
	if (c->holders.known) {
		json_array(&j, "holders");
		for (uint32_t i = 0; i < c->holders.names.count; i++)
			put_holder(&j, c->holders.names.list[c->holders.order[i]],
			           &c->holders.list[c->holders.order[i]]);
		json_array_end(&j);
	}
	if (c->lost.wanted)
		put_lost(&j, &c->lost);
	json_array(&j, "regions");
	for (size_t i = 0; i < c->regions.count; i++)
		put_region(&j, &c->regions.list[i]);
	json_array_end(&j);
	json_object_end(&j);
}

int census_report(const struct census *c, const struct census_view *view, struct err *e)
{
	int rc = 0;

	if (view->json)
		census_json(c, view);
	else
		rc = census_text(c, view, e);
	if (rc < 0)
		return rc;
	return fflush(view->out) || ferror(view->out) ? err_set(e, EIO, "cannot write the census") : 0;
}
