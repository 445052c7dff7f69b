/* SPDX-License-Identifier: MIT */
#include "census/reach/apart_words.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "census/reach/reach_roots.h"
#include "host/clocks.h"

#define WINDOW_BYTES (256u << 10)
#define NEW_BYTES (16ull << 20) /* of one that has come */
#define NEW_ALL_BYTES (64ull << 20)
#define NEW_RANGES 1024u

struct reading {
	const struct apart_words *of;
	struct target_memory memory;
	uint8_t *window;
	unsigned every;
	uint64_t **words;
	size_t *count;
};

static bool is_apart(const struct clone_prospect *p, const struct mapping *m)
{
	return m->shared || !clone_prospect_keeps(p, m->start, m->end);
}

static int add_words(const struct reading *x, size_t bytes, struct err *e)
{
	uint64_t word;

	for (size_t at = 0; at + sizeof word <= bytes; at += x->every) {
		memcpy(&word, x->window + at, sizeof word);
		if (!reach_is_near(x->of->reach, word))
			continue;
		if (!grow_list(*x->words, *x->count))
			return err_set(e, ENOMEM, "no memory for pointers in memory that it shares");
		(*x->words)[(*x->count)++] = word;
	}
	return 0;
}

/* A word may lie across two windows. */
static int read_run(const struct reading *x, uint64_t start, uint64_t end, struct err *e)
{
	const uint64_t step = WINDOW_BYTES - sizeof(uint64_t);
	int rc = 0;

	for (uint64_t at = start; at < end && rc == 0; at += step) {
		const size_t bytes = end - at < WINDOW_BYTES ? end - at : WINDOW_BYTES;
		if (clock_monotonic_ns() > x->of->until_ns)
			return err_set(e, ETIME, "it would be stopped for too long");
		rc = target_read(&x->memory, at, x->window, bytes, e);
		rc = rc ?: add_words(x, bytes, e);
	}
	return rc;
}

static int read_mapping(struct reading *x, struct page_scan *scan, const struct mapping *m, struct err *e)
{
	int rc = 0;

	x->every = reach_root_every(m);
	for (uint64_t at = m->start; at < m->end && rc == 0;) {
		if (clock_monotonic_ns() > x->of->until_ns)
			return err_set(e, ETIME, "it would be stopped for too long");
		if (!page_scan_step(scan, &at, m->end))
			break;
		for (size_t i = 0; i < scan->count && rc == 0; i++)
			if (!scan->runs[i].swapped && reach_root_may_hold(m, !scan->runs[i].file))
				rc = read_run(x, scan->runs[i].start, scan->runs[i].end, e);
	}
	return rc;
}

int apart_words_read(const struct apart_words *a, uint64_t **words, size_t *count, struct err *e)
{
	AUTO_FREE uint8_t *window = malloc(WINDOW_BYTES);
	struct reading x = {
		.of = a, .memory = a->reach->memory->memory, .window = window, .words = words, .count = count
	};
	struct page_scan scan;

	if (!window)
		return err_set(e, ENOMEM, "no memory for pages that are read");
	x.memory.budget = NULL;
	int rc = page_scan_open(&scan, a->target, e);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < a->maps->count && rc == 0; i++)
		if (is_apart(a->prospect, &a->maps->list[i]) && reach_root_may_hold(&a->maps->list[i], true))
			rc = read_mapping(&x, &scan, &a->maps->list[i], e);
	page_scan_close(&scan);
	return rc;
}

uint64_t apart_words_bytes(const struct reach *r, const struct clone_prospect *p)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < r->maps->count; i++) {
		const struct mapping *m = &r->maps->list[i];
		if (is_apart(p, m) && reach_root_may_hold(m, true))
			bytes += resident_pages_sum(r->memory->pages, m->start, m->end);
	}
	return bytes;
}

struct adding {
	const struct clone_prospect *prospect;
	struct apart_range *list; /* ascending */
	size_t count;
	uint64_t bytes;
	bool no_memory;
};

static void add_new(void *context, const struct maps_change *change)
{
	struct adding *a = context;
	const struct mapping *m = change->after;
	const uint64_t bytes = change->end - change->start;
	struct apart_range *last = a->count ? &a->list[a->count - 1] : NULL;

	if (!m || m->shared || m->path[0] || (change->before && change->before->prot) || bytes > NEW_BYTES ||
	    a->bytes + bytes > NEW_ALL_BYTES || !reach_root_may_hold(m, true) ||
	    !clone_prospect_keeps(a->prospect, change->start, change->end))
		return;
	a->bytes += bytes;
	if (last && last->end == change->start) {
		last->end = change->end;
		return;
	}
	if (a->count >= NEW_RANGES)
		return;
	a->no_memory |= !grow_list(a->list, a->count);
	if (!a->no_memory)
		a->list[a->count++] = (struct apart_range){ change->start, change->end };
}

int apart_words_add_new(struct clone_prospect *p, const struct maps *before, const struct maps *now, struct err *e)
{
	struct adding a = { .prospect = p };

	maps_diff(before, now, add_new, &a);
	for (size_t i = 0; i < a.count && !a.no_memory; i++) {
		a.no_memory = !grow_list(p->apart, p->apart_count);
		if (!a.no_memory)
			p->apart[p->apart_count++] = a.list[i];
	}
	free(a.list);
	clone_prospect_sort(p);
	return a.no_memory ? err_set(e, ENOMEM, "no memory for mappings that have come") : 0;
}

struct comparison {
	const struct clone_prospect *prospect;
	bool lacks;
};

static void compare(void *context, const struct maps_change *change)
{
	struct comparison *c = context;

	if (change->before && !change->after && !change->before->shared && reach_root_may_hold(change->before, true) &&
	    clone_prospect_keeps(c->prospect, change->start, change->end))
		c->lacks = true;
}

int apart_words_check(const struct maps *maps, const struct maps *of_clone, const struct clone_prospect *p,
                      struct err *e)
{
	struct comparison c = { .prospect = p };

	maps_diff(maps, of_clone, compare, &c);
	return c.lacks ? err_set(e, EAGAIN, "it keeps new memory from its children (MADV_DONTFORK)") : 0;
}
