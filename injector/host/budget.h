/* SPDX-License-Identifier: MIT */
/*
 * What one step of the preparation may cost. The target decides how many modules, symbols, relocations and functions
 * there are, and headers may promise tables that are far larger than what is after them. So memory is charged
 * before it is taken, by what it is for, and so is time: the bytes that are read, and what loops do that grow faster
 * than these.
 *
 * The limits are far beyond real programs: the symbols and names of the largest libraries take some 50 MB.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

#define BUDGET_MODULES_BYTES (192ull << 20) /* what is kept of modules */
#define BUDGET_PLAN_BYTES (192ull << 20)    /* what the plan takes, most of it for moments */
/* The call frame information of one module; what is compiled from it is limited in unwind_worker.h. */
#define BUDGET_FRAMES_BYTES (96ull << 20)
#define BUDGET_MODULES_WORK (2ull << 30) /* bytes that are read for that: a few seconds */
#define BUDGET_PLAN_WORK (4ull << 30)    /* the same for the plan, which reads all code that has GOT entries */
#define BUDGET_CHILDREN_NS 5000000000ull /* CPU time of children that unpack, or a quarter of the time that goes by */
#define BUDGET_COMPARE 8u                /* what one comparison is charged as */

struct budget {
	uint64_t limit;       /* of memory, bytes */
	uint64_t memory;      /* what of it is left */
	uint64_t work;        /* units that are left */
	uint64_t children_ns; /* BUDGET_CHILDREN_NS that is left: beyond it nothing is unpacked, which is no refusal */
	struct err refusal;   /* the first; code 0: none */
};

void budget_start(struct budget *b, uint64_t memory_bytes, uint64_t work);

/*
 * A budget that is NULL has no limits. -E2BIG: refused, nothing is charged, the text names the limit; all that is asked
 * for after a refusal is refused too. budget_fits is for memory that is given back soon: it is only compared with what
 * is left.
 */
int budget_take(struct budget *b, uint64_t bytes, struct err *e) WARN_UNUSED;
int budget_fits(struct budget *b, uint64_t bytes, struct err *e) WARN_UNUSED;
int budget_work(struct budget *b, uint64_t units, struct err *e) WARN_UNUSED;
/* For the end of a step: -E2BIG if anything was refused on the way, where it may have been passed over. */
int budget_check(const struct budget *b, struct err *e) WARN_UNUSED;
