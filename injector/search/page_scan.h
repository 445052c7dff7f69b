/* SPDX-License-Identifier: MIT */
/*
 * Which pages of a process are there, found without touching them and without a cost that grows with the address space.
 *
 * A program may reserve terabytes of which it uses little (garbage collectors, AddressSanitizer, databases).
 * /proc/PID/pagemap has eight bytes for each page of them, tables that do not exist included: 16 GB for 8 TiB.
 * PAGEMAP_SCAN (Linux 6.7, the kernel's admin-guide/mm/pagemap.rst) passes over tables that do not exist, a few
 * microseconds for a terabyte. Without it pagemap is read, and /proc/PID/smaps tells of which large mappings no page is
 * there.
 *
 * A step is short, because the kernel holds the lock of the target's address space meanwhile, for which its mmap waits:
 * some 15 ns for each page that is there. Steps grow where nothing is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "maps/maps.h"
#include "process/target.h"

#define PAGE_SCAN_RUNS 512u

struct page_run {
	uint64_t start, end; /* of pages that are alike */
	bool swapped;        /* to read them would bring them back */
	bool file;           /* not a private copy: of a file, or shared memory */
	bool huge;           /* one page of 2 MiB in the page table; only by PAGEMAP_SCAN */
};

struct page_scan {
	int pagemap;
	bool by_reading;      /* no PAGEMAP_SCAN */
	bool knows_no_guards; /* before Linux 6.15 */
	uint64_t step_bytes;
	struct maps empty; /* large mappings of which no page is there, by smaps; only by_reading */
	bool knows_empty;
	struct page_run runs[PAGE_SCAN_RUNS]; /* of the last step, ascending */
	size_t count;
};

/* page_scan_close after. */
int page_scan_open(struct page_scan *p, const struct target *t, struct err *e) WARN_UNUSED;
/* Of a file in the format of pagemap, which is closed by page_scan_close; for tests, and older kernels. */
void page_scan_by_reading(struct page_scan *p, int pagemap);
void page_scan_close(struct page_scan *p);

/*
 * Before the mappings are scanned: finds out which are empty, if that can only be known by asking for all. Takes time
 * with the memory that is there, not with the address space. Never fails: unknown mappings are scanned.
 */
void page_scan_prepare(struct page_scan *p, const struct target *t, const struct maps *maps);

/*
 * A step from *at on: the runs of pages that are there in it, and *at after it, at most end. Pages of zeros that were
 * only read, and guards (MADV_GUARD_INSTALL), are left out. False: the mapping is gone.
 */
bool page_scan_step(struct page_scan *p, uint64_t *at, uint64_t end);
