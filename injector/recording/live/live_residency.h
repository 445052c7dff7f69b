/* SPDX-License-Identifier: MIT */
/*
 * How much of each block that is live at the end is there, in swap, or was never touched: by the pages of a look
 * (quick_scan.h), into the records of the blocks.
 */
#pragma once

#include "census/pages/quick_scan.h"
#include "recording/dump_writer.h"

#define LIVE_RESIDENCY_NS 40000000u /* of CPU time: some 300,000 blocks; those that are left stay unmarked */

/* When the target has nothing of ours any more. Blocks in mappings that were not looked at to their end stay unmarked.
 */
void live_residency_mark(const struct dump_writer *w, const struct quick_scan *scan, const struct maps *maps);
/* The flags of a block (dump_memory.h). */
uint16_t live_residency_of(const struct resident_pages *pages, uint64_t address, uint64_t bytes);
