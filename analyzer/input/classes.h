/* SPDX-License-Identifier: MIT */
/*
 * Samples summed up by the size of their blocks, in powers of two, by their lifetime: how long blocks lived that were
 * freed, and how old the others are; or by how much of a block is there at the end. All are known of samples that have
 * a record; what was allocated by others is a class of its own, so that the classes are always the total.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "input/rows.h"

enum class_kind { CLASS_NONE, CLASS_SIZE, CLASS_LIFETIME, CLASS_RESIDENCY };

enum residency {
	RESIDENCY_PRESENT, /* all of it, to a hundredth */
	RESIDENCY_PARTLY,
	RESIDENCY_SWAPPED, /* the half, or more */
	RESIDENCY_ABSENT,  /* less than a hundredth of it has a page: it was never written, or given back (madvise) */
	RESIDENCY_UNKNOWN,
	RESIDENCY_FREED, /* before the end */
	RESIDENCY_COUNT
};

#define CLASS_COUNT 66u /* the last one is that of samples whose record is gone */

struct class_sum {
	struct estimate_sum sum[FIGURE_COUNT];
	struct slack slack; /* of those that are live */
};

struct classes {
	struct class_sum sizes[CLASS_COUNT], lifetimes[CLASS_COUNT], residency[CLASS_COUNT];
};

static inline const struct class_sum *classes_of(const struct classes *classes, enum class_kind kind)
{
	return kind == CLASS_SIZE ? classes->sizes : kind == CLASS_LIFETIME ? classes->lifetimes : classes->residency;
}

/* By the flags of a live record; freed: it is none. */
enum residency residency_of(unsigned flags, bool freed);
const char *residency_name(enum residency residency);
/* The class of a size in bytes, of a time in nanoseconds; of an enum residency, itself. */
size_t class_of(enum class_kind kind, uint64_t value);
/* Its limits, low <= value < high in bytes or seconds; high INFINITY: none. Of an enum residency the number. */
void class_limits(enum class_kind kind, size_t number, double *low, double *high);
