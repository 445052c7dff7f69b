/* SPDX-License-Identifier: MIT */
/*
 * Samples as a dump has them, and those that are parts of one block: what is left, and what has gone, of a mapping that
 * was cut (DUMP_LIVE_PART). They were sampled together, so it matters which of them a sum has (estimate_add_part()). In
 * the dump they are scattered; here they are collected, and told one block after the other.
 *
 * Parts of a block come in the order in which they end, the last one first. So at any time what is there of a block are
 * the first of its parts, and the first one is there as long as anything is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "dump_format.h"
#include "hooks.h"
#include "stats/estimate.h"

#define PART_SUMS_MAX 64u

/* Which sums have parts of the block that is told, and how much of it. */
struct part_sums {
	size_t count;
	struct {
		const struct estimate_sum *sum;
		double x;
	} list[PART_SUMS_MAX];
};

/* A record of either kind. */
struct sample {
	uint64_t address, size, usable;
	uint64_t whole;       /* size of the block that it is a part of, else of itself */
	uint64_t born, freed; /* stamps; freed 0: it is a live record */
	double survival;      /* thinning.h: of a session at a larger rate it would not be a sample; for leaks only */
	uint32_t stack, rate; /* rate 0: given up; others stand for it */
	uint32_t number, tid; /* of the stack; 0: not known */
	uint16_t flags;       /* of a live record */
	bool missed, aligned; /* its free was not seen; it was asked for with an alignment */
	bool mapping;         /* no allocator gave it */
	/* Of parts: */
	struct part_sums *sums; /* NULL: it is none */
	double rest;            /* bytes of the parts before it */
	double live;            /* of the first one: bytes of those that are live */
};

static inline bool sample_is_mapping(uint16_t hook)
{
	return hook >= HOOK_mmap && hook <= HOOK_mremap;
}
/* Without its survival. rate: with which it counts. */
struct sample sample_of_live(const struct dump_live_record *record, uint32_t rate);
struct sample sample_of_history(const struct dump_history_record *record, uint32_t rate);
/* Whether another part stands for the block. */
static inline bool sample_is_later(const struct sample *sample)
{
	return sample->rest > 0;
}
/* Adds it to bytes and blocks. */
void sample_add(struct estimate_sum pair[2], const struct sample *sample, double p);
/* The same of what has gone: a block of which there still is something has not. */
void sample_add_gone(struct estimate_sum pair[2], const struct sample *sample, double p);
/* Adds so many bytes of it. */
void sample_add_bytes(struct estimate_sum *sum, const struct sample *sample, double bytes, double p);

struct parts {
	struct sample *list;
	size_t count;
	struct part_sums sums;
};

/* -ENOMEM. */
int parts_add(struct parts *parts, const struct sample *sample) WARN_UNUSED;
/* Puts all in order. */
void parts_join(struct parts *parts);
/* Number i is to be added next. */
const struct sample *parts_next(struct parts *parts, size_t i);
void parts_done(struct parts *parts);
