/* SPDX-License-Identifier: MIT */
#include "census/pages/quick_scan.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/now.h"
#include "census/pages/region_table.h"
#include "base/order.h"

struct sized {
	uint64_t bytes;
	size_t mapping;
};

static int compare_sizes(const void *a, const void *b)
{
	const struct sized *x = a, *y = b;

	return x->bytes != y->bytes ? (x->bytes < y->bytes ? -1 : 1)
	                            : (x->mapping > y->mapping) - (x->mapping < y->mapping);
}

ORDER_BY(compare_runs, struct page_run, start);

/* 1: the time was up before its end. */
static int scan_mapping(struct quick_scan *q, struct page_scan *scan, const struct mapping *m, uint64_t until_ns,
                        struct err *e)
{
	int rc = 0;

	for (uint64_t at = m->start; at < m->end && rc == 0;) {
		if (now_ns(CLOCK_THREAD_CPUTIME_ID) >= until_ns)
			return 1;
		if (!page_scan_step(scan, &at, m->end))
			break; /* unmapped meanwhile */
		for (size_t k = 0; k < scan->count && rc == 0; k++)
			rc = resident_pages_add(&q->pages, &scan->runs[k], e);
	}
	return rc;
}

int quick_scan_take(struct quick_scan *q, const struct target *t, const struct maps *maps, uint64_t until_ns,
                    struct err *e)
{
	struct page_scan scan;
	struct region r;
	size_t count = 0;

	*q = (struct quick_scan){ .unfinished = calloc(maps->count + 1, sizeof *q->unfinished) };
	AUTO_FREE struct sized *order = calloc(maps->count + 1, sizeof *order);
	if (!q->unfinished || !order)
		return err_set(e, ENOMEM, "no memory for its mappings");
	for (size_t i = 0; i < maps->count; i++)
		if (region_of_mapping(&r, &maps->list[i]))
			order[count++] = (struct sized){ maps->list[i].end - maps->list[i].start, i };
	qsort(order, count, sizeof *order, compare_sizes);
	int rc = page_scan_open(&scan, t, e);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < count && rc >= 0; i++) {
		rc = scan_mapping(q, &scan, &maps->list[order[i].mapping], until_ns, e);
		q->unfinished[order[i].mapping] = rc == 1;
		q->unfinished_count += rc == 1;
	}
	page_scan_close(&scan);
	if (q->pages.count)
		qsort(q->pages.runs, q->pages.count, sizeof *q->pages.runs, compare_runs);
	return rc < 0 ? rc : 0;
}

void quick_scan_free(struct quick_scan *q)
{
	resident_pages_free(&q->pages);
	free(q->unfinished);
	*q = (struct quick_scan){ 0 };
}
