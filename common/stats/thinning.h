/* SPDX-License-Identifier: MIT */
/*
 * Thinning: how a full live table is made emptier without bias.
 *
 * A sample of S bytes that was taken at the rate r stands for 1/p(r) blocks, p(r) = 1 - exp(-S/r). Kept with the
 * probability p(T)/p(r), and then counted as one of the larger rate T, it stands for 1/p(T): in all the block is in the
 * figures with p(T), as if T had been the rate from the start. What is kept is decided by a number u in (0, 1) that a
 * hash makes of the sample itself: it is kept if u < p(T)/p(r), that is as long as T is below its survival rate -S /
 * ln(1 - u p(r)). So
 *
 * - thinning to T1 and later to T2 keeps the same samples as thinning to the larger of them at once;
 * - a reader comes to the same decision. It leaves out what memattach has given up and also what memattach did not get
 *   hold of, because it was being written, freed or read just then. Removal from the table is only the collection of
 *   what is no longer counted, and no race in it can bias a figure.
 *
 * A thinning concerns the samples that were born before it and not freed before it. It is recorded
 * (dump_rate_change.thinned_bytes) before anything is removed; header.thinnings counts them, so that a reader which
 * finds another number at the end of its reading begins again.
 *
 * T may be chosen by how many samples would be left: trying the rates one after the other, smallest first, up to the
 * first that leaves few enough, is a stopping time, and the estimate after each step has the one before it as its mean.
 * So the estimate at the rate where one stops has no bias either.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "dump_format.h"
#include "base/err.h"

struct thinning {
	uint64_t stamp;
	uint64_t rate_bytes;
};

/* What a sample's fate depends on; live and history records, and all parts of a mapping, have it alike. */
struct thinning_sample {
	uint64_t size;  /* as it was sampled */
	uint64_t stamp; /* of the allocation */
	uint32_t stack, tid;
	uint32_t rate_bytes; /* as it was taken */
};

static inline struct thinning_sample thinning_of_live(const struct dump_live_record *r)
{
	return (struct thinning_sample){ DUMP_SAMPLED_BYTES(r, DUMP_LIVE_PART), r->stamp, r->stack, r->tid,
		                         r->rate_bytes };
}

static inline struct thinning_sample thinning_of_history(const struct dump_history_record *r)
{
	return (struct thinning_sample){ DUMP_SAMPLED_BYTES(r, DUMP_HISTORY_PART), r->allocated_stamp, r->stack, r->tid,
		                         r->rate_bytes };
}

/* The sample counts at rates below this one only. Larger than its own rate. */
double thinning_survival(const struct thinning_sample *sample);
/* The rate that the sample counts with, 0 if it was given up. freed: stamp of its free, UINT64_MAX if it lives. */
uint32_t thinning_rate(const struct thinning *list, size_t count, const struct thinning_sample *sample, uint64_t freed);

/*
 * The same for very many samples and thinnings: a search for the thinnings of the sample's life, and a tree of maxima
 * over them, so that the time is that of a logarithm. Starts as zero.
 */
struct thinning_index {
	struct thinning *list; /* by stamp */
	size_t count;
	uint64_t *largest; /* leaf i, the rate of list[i], at count + i; node i has the larger one of nodes 2 i and 2 i
	                      + 1 */
};

/* Takes the list, which belongs to free(). -ENOMEM: the index is empty, the list freed. */
int thinning_index_make(struct thinning_index *index, struct thinning *list, size_t count) WARN_UNUSED;
void thinning_index_done(struct thinning_index *index);
uint32_t thinning_index_rate(const struct thinning_index *index, const struct thinning_sample *sample, uint64_t freed);
