/* SPDX-License-Identifier: MIT */
/* What the blocks are that are live at the end, and who holds them (block_labels.h): from the live records, and into
 * the dump. */
#pragma once

#include "census/blocks/block_labels.h"
#include "recording/dump_writer.h"

/* Of CPU time for their types: some 30,000 blocks that are far from each other, or 400,000 neighbours; and where it was
 * asked who holds them. */
#define LIVE_LABELS_NS 40000000u
#define LIVE_LABELS_ASKED_NS 1000000000u

/* Blocks of all live records, as far as there is room, sorted. Mappings of files are none: to see what is in them would
 * be to read the files. */
void live_labels_collect(struct block_labels *labels, const struct dump_writer *w);
/* Nothing where there are no blocks. -ENOSPC, -ENOMEM: what was recorded is not whole, as its reader sees. */
int live_labels_record(const struct block_labels *labels, struct dump_writer *w, struct err *e) WARN_UNUSED;
