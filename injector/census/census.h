/* SPDX-License-Identifier: MIT */
/*
 * --census: what the resident memory of a process is, all of it, while it runs.
 *
 * Only /proc is read, and of its memory pages that are there. Nothing is stopped, traced or written, no page is brought
 * in, and nothing is held that a signal would have to undo. So the target may change meanwhile: VmRSS is read before
 * and after its pages are looked up, and who shows the sum says how they differ; what is read of its heap afterwards is
 * checked against that (chunk_walk.h).
 *
 * VmRSS itself is not exact on many kernels: up to Linux 6.1 each thread keeps up to 64 pages of each kind to itself,
 * later ones have the processors do so, and only the latest add these up. In a small process that is some percent. So
 * where the sum differs the kernel is asked to count, too (target_resident_exact()).
 */
#pragma once

#include "census/blocks/block_labels.h"
#include "census/blocks/block_types.h"
#include "census/blocks/holders.h"
#include "census/reach/reach_settle.h"
#include "census/heap/census_heap.h"
#include "census/pages/region_table.h"
#include "census/pages/stack_owners.h"
#include "process/target.h"

/* What nothing points to, as far as it was asked for. */
struct census_lost {
	bool wanted, known;
	bool holders;     /* are wanted, too, and are found as soon as it runs again: stacks hold some */
	char why[160];    /* it is not known */
	struct maps maps; /* of the moment in which it was counted */
	struct resident_pages pages;
	struct reach_figures figures;
	struct block_types types;
	uint64_t stopped_ns;
	bool cloned;          /* it was counted in a clone; … */
	char not_cloned[160]; /* … or while it was stopped, for this reason; "": it was asked for so */
};

struct census {
	const struct target *target;
	struct maps maps; /* owns the names */
	bool has_process;
	struct target_memory process;
	struct census_memory memory;
	struct page_sums sums;
	struct reach reach;
	struct census_lost lost;
	struct holders holders;
	struct stack_owners stacks;
	struct resident_pages pages;
	struct census_heap heap;
	struct block_types types;
	struct region_table regions;
	uint64_t resident, swapped, huge; /* sums */
	uint64_t rss_before, rss_after;   /* VmRSS */
	uint64_t rss_exact;               /* counted page by page, where the sum is not that of VmRSS; 0: it was not */
	uint64_t when_ns;                 /* CLOCK_MONOTONIC */
};

/* What is looked at beside what is always told. */
struct census_wish {
	bool lost, holders;
	struct block_labels *blocks;     /* who holds these is wanted alone; NULL: not */
	void (*reading)(uint64_t bytes); /* called now and then while its heap is read; NULL: not */
	reach_progress_fn progress;
	uint64_t budget_ns; /* of CPU time, for following pointers; then it is given up. 0: by how much memory there is
	                     */
};

/* Reads it all. census_free afterwards; on failure, too. */
int census_take(struct census *c, const struct target *t, const struct census_wish *wish, struct err *e) WARN_UNUSED;
void census_free(struct census *c);
/* What a report says is kept, and no more: of a census that others are compared with. */
void census_keep_figures(struct census *c);
/* Bytes that the kernel counts as resident and the sum has not, or the other way round, beyond what changed meanwhile.
 */
uint64_t census_gap(const struct census *c);
/* Are they few enough for "all accounted for"? */
bool census_adds_up(const struct census *c);
