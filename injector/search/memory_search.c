/* SPDX-License-Identifier: MIT */
#include "search/memory_search.h"

#include <stdlib.h>

#include "base/cleanup.h"

#define CHUNK_BYTES (256u << 10) /* stays in a processor's second cache between reading and searching */

/* True: found. */
static bool search_run(const struct memory_search *s, const struct page_run *run, uint64_t *buffer)
{
	for (uint64_t at = run->start; at < run->end && !s->is_over(s->context); at += CHUNK_BYTES) {
		const uint64_t bytes = run->end - at < CHUNK_BYTES ? run->end - at : CHUNK_BYTES;
		if (target_read(s->memory, at, buffer, bytes, ERR_IGNORED) == 0 &&
		    s->words(s->context, buffer, at, bytes / sizeof *buffer))
			return true;
	}
	return false;
}

static bool search_mapping(const struct memory_search *s, const struct mapping *m, uint64_t *buffer)
{
	for (uint64_t at = m->start; at < m->end && !s->is_over(s->context);) {
		if (!page_scan_step(s->pages, &at, m->end))
			return false;
		for (size_t i = 0; i < s->pages->count && !s->is_over(s->context); i++) {
			const struct page_run run = s->pages->runs[i];
			const enum memory_run what = s->run(s->context, &run);
			if (what == MEMORY_RUN_CHANGED) { /* the runs are others now */
				at = run.start;
				break;
			}
			if (what == MEMORY_RUN_READ && search_run(s, &run, buffer))
				return true;
		}
	}
	return false;
}

int memory_search(const struct memory_search *s, const struct target *t, const struct maps *maps, struct err *e)
{
	AUTO_FREE uint64_t *buffer = malloc(CHUNK_BYTES);

	if (!buffer)
		return err_set(e, ENOMEM, "out of memory");
	page_scan_prepare(s->pages, t, maps);
	for (size_t i = 0; i < maps->count && !s->is_over(s->context); i++)
		if (s->mapping(s->context, &maps->list[i]) && search_mapping(s, &maps->list[i], buffer))
			break;
	return 0;
}
