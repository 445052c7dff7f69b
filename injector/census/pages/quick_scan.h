/* SPDX-License-Identifier: MIT */
/*
 * Which pages are there, found within so much CPU time. Small mappings come first, so that where the time is up few
 * large ones are left: of these the kernel's sums tell how much is there.
 */
#pragma once

#include "census/pages/resident_pages.h"
#include "maps/maps.h"

struct quick_scan {
	struct resident_pages pages;
	bool *unfinished; /* by the number of a mapping: not all of its pages were looked at */
	size_t unfinished_count;
};

/* until_ns: of the CPU time of this thread. quick_scan_free afterwards; on failure, too. */
int quick_scan_take(struct quick_scan *q, const struct target *t, const struct maps *maps, uint64_t until_ns,
                    struct err *e) WARN_UNUSED;
void quick_scan_free(struct quick_scan *q);
