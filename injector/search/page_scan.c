/* SPDX-License-Identifier: MIT */
#include "search/page_scan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "process/live_thread.h"
#include "host/watchdog.h"

#define PAGE_BYTES 4096u
#define STEP_FIRST (256ull << 20)
#define STEP_LAST (1ull << 40)
#define READ_ENTRIES 16384u        /* of pagemap in one step */
#define LARGE_MAPPING (1ull << 30) /* smaps is asked about these … */
#define LARGE_SUM (32ull << 30)    /* … if there is so much of them */

/* An entry of /proc/PID/pagemap. */
#define ENTRY_PRESENT (1ull << 63)
#define ENTRY_SWAPPED (1ull << 62)
#define ENTRY_FILE (1ull << 61)
#define ENTRY_GUARD (1ull << 58) /* Linux 6.15: MADV_GUARD_INSTALL, which also says swapped */

/* Linux UAPI, linux/fs.h of 6.7. */
struct scan_region {
	uint64_t start, end, categories;
};
struct scan_request {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
#define SCAN_IOCTL _IOWR('f', 16, struct scan_request)
#define SCAN_FILE (1u << 2)
#define SCAN_PRESENT (1u << 3)
#define SCAN_SWAPPED (1u << 4)
#define SCAN_ZERO (1u << 5)
#define SCAN_HUGE (1u << 6)
#define SCAN_GUARD (1u << 8) /* Linux 6.15 */

static bool scan_once(struct page_scan *p, uint64_t *at, uint64_t end, int *error)
{
	struct scan_region regions[PAGE_SCAN_RUNS];
	struct scan_request request = {
		.size = sizeof request,
		.start = *at,
		.end = end,
		.vec = (uint64_t)(uintptr_t)regions,
		.vec_len = PAGE_SCAN_RUNS,
		.category_anyof_mask = SCAN_PRESENT | SCAN_SWAPPED,
		.return_mask = SCAN_PRESENT | SCAN_SWAPPED | SCAN_FILE | SCAN_ZERO | SCAN_HUGE | SCAN_GUARD,
	};

	if (p->knows_no_guards)
		request.return_mask &= ~(uint64_t)SCAN_GUARD;
	watchdog_call_begin();
	int n = ioctl(p->pagemap, SCAN_IOCTL, &request);
	*error = n < 0 ? errno : 0;
	watchdog_call_end();
	if (n < 0)
		return false;
	for (int i = 0; i < n; i++)
		if (!(regions[i].categories & (SCAN_ZERO | SCAN_GUARD)))
			p->runs[p->count++] = (struct page_run){
				.start = regions[i].start,
				.end = regions[i].end,
				.swapped = (regions[i].categories & SCAN_SWAPPED) != 0,
				.file = (regions[i].categories & SCAN_FILE) != 0,
				.huge = (regions[i].categories & SCAN_HUGE) != 0,
			};
	*at = request.walk_end > *at ? request.walk_end : end;
	return true;
}

static bool continues(const struct page_run *run, uint64_t page, uint64_t entry)
{
	return run->end == page && run->swapped == ((entry & ENTRY_SWAPPED) != 0) &&
	       run->file == ((entry & ENTRY_FILE) != 0);
}

static bool read_once(struct page_scan *p, uint64_t *at, uint64_t end)
{
	uint64_t entries[READ_ENTRIES];
	size_t pages = (end - *at) / PAGE_BYTES < READ_ENTRIES ? (end - *at) / PAGE_BYTES : READ_ENTRIES;
	const struct mapping *empty = p->knows_empty ? maps_find(&p->empty, *at) : NULL;

	if (empty) {
		*at = empty->end < end ? empty->end : end;
		return true;
	}
	watchdog_call_begin();
	ssize_t n = pread(p->pagemap, entries, pages * sizeof *entries, (off_t)(*at / PAGE_BYTES * sizeof *entries));
	watchdog_call_end();
	if (n < (ssize_t)sizeof *entries)
		return false;
	pages = (size_t)n / sizeof *entries;
	for (size_t i = 0; i < pages; i++, *at += PAGE_BYTES) {
		struct page_run *last = p->count ? &p->runs[p->count - 1] : NULL;
		if (!(entries[i] & (ENTRY_PRESENT | ENTRY_SWAPPED)) || (entries[i] & ENTRY_GUARD))
			continue;
		if (last && continues(last, *at, entries[i])) {
			last->end += PAGE_BYTES;
			continue;
		}
		if (p->count == PAGE_SCAN_RUNS)
			break;
		p->runs[p->count++] = (struct page_run){
			.start = *at,
			.end = *at + PAGE_BYTES,
			.swapped = (entries[i] & ENTRY_SWAPPED) != 0,
			.file = (entries[i] & ENTRY_FILE) != 0,
		};
	}
	return true;
}

bool page_scan_step(struct page_scan *p, uint64_t *at, uint64_t end)
{
	int error;

	p->count = 0;
	if (p->by_reading)
		return read_once(p, at, end);
	if (!scan_once(p, at, end - *at > p->step_bytes ? *at + p->step_bytes : end, &error)) {
		if (error != ENOTTY && error != EINVAL)
			return false;
		p->by_reading = true;
		return read_once(p, at, end);
	}
	p->step_bytes = p->count ? STEP_FIRST : p->step_bytes * 2 < STEP_LAST ? p->step_bytes * 2 : STEP_LAST;
	return true;
}

int page_scan_open(struct page_scan *p, const struct target *t, struct err *e)
{
	*p = (struct page_scan){ .pagemap = -1, .step_bytes = STEP_FIRST };
	int rc = live_thread_open(t, "pagemap", &p->pagemap, e);
	if (rc < 0)
		return rc;
	/* An empty range: says only what the kernel knows. */
	uint64_t at = PAGE_BYTES;
	int error;
	for (unsigned i = 0; i < 2 && !scan_once(p, &at, PAGE_BYTES, &error); i++) {
		p->by_reading = p->knows_no_guards || error == ENOTTY;
		p->knows_no_guards = true;
	}
	return 0;
}

void page_scan_by_reading(struct page_scan *p, int pagemap)
{
	*p = (struct page_scan){ .pagemap = pagemap, .by_reading = true, .step_bytes = STEP_FIRST };
}

void page_scan_close(struct page_scan *p)
{
	if (p->pagemap >= 0)
		close(p->pagemap);
	maps_free(&p->empty);
	*p = (struct page_scan){ .pagemap = -1 };
}

static bool has_large(const struct maps *maps)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < maps->count; i++)
		if (maps->list[i].end - maps->list[i].start >= LARGE_MAPPING)
			sum += maps->list[i].end - maps->list[i].start;
	return sum >= LARGE_SUM;
}

/* smaps is maps with lines "Rss:   12 kB" after each line. */
static void find_empty(struct maps *empty, FILE *smaps)
{
	struct mapping m = { .path = "" };
	AUTO_FREE char *line = NULL;
	size_t size = 0;
	unsigned long long kib;
	bool rss_is_zero = false;

	while (getline(&line, &size, smaps) > 0) {
		unsigned long long start, end;
		if (sscanf(line, "%llx-%llx ", &start, &end) == 2) {
			m.start = start;
			m.end = end;
		} else if (sscanf(line, "Rss: %llu kB", &kib) == 1) {
			rss_is_zero = kib == 0;
		} else if (sscanf(line, "Swap: %llu kB", &kib) == 1 && kib == 0 && rss_is_zero &&
		           m.end - m.start >= LARGE_MAPPING) {
			struct mapping *more = realloc(empty->list, (empty->count + 1) * sizeof *more);
			if (!more || watchdog_asked_twice())
				return;
			empty->list = more;
			empty->list[empty->count++] = m;
		}
	}
}

void page_scan_prepare(struct page_scan *p, const struct target *t, const struct maps *maps)
{
	int fd;

	if (!p->by_reading || p->knows_empty || !has_large(maps) || live_thread_open(t, "smaps", &fd, ERR_IGNORED) < 0)
		return;
	AUTO_FCLOSE FILE *smaps = fdopen(fd, "re");
	if (!smaps) {
		close(fd);
		return;
	}
	find_empty(&p->empty, smaps);
	p->knows_empty = true;
}
