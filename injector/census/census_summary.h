/* SPDX-License-Identifier: MIT */
/* A census in few rows: what belongs together is one, the largest first, and which of them says most. */
#pragma once

#include "census/census.h"

#define SUMMARY_VERDICT 160

enum summary_kind {
	SUMMARY_MALLOC,
	SUMMARY_PYTHON,
	SUMMARY_RUNTIME, /* by name */
	SUMMARY_ALLOCATOR,
	SUMMARY_STACKS,
	SUMMARY_ANONYMOUS, /* by name */
	SUMMARY_CODE,
	SUMMARY_DATA,
	SUMMARY_FILES,
	SUMMARY_SHARED, /* by name */
	SUMMARY_KERNEL,
};

struct summary_row {
	enum summary_kind kind;
	const char *name; /* "" where the kind has no names */
	uint64_t resident, swapped, regions, threads;
};

struct summary {
	struct summary_row *rows;
	size_t count;
};

/* Names belong to the census. summary_free afterwards; on failure, too. */
int summary_make(struct summary *s, const struct census *c, struct err *e) WARN_UNUSED;
void summary_free(struct summary *s);
/* The row of the same kind and name, or NULL. */
const struct summary_row *summary_find(const struct summary *s, const struct summary_row *like);
/* The allocator whose library is mapped beside glibc's malloc, and which is not looked into; NULL: none. */
const char *census_other_allocator(const struct maps *maps);
/* The one that may have brk's heap where glibc's malloc was not found; NULL: none is known. */
const char *census_brk_allocator(const struct census *c);
/* Freed, and kept by glibc's malloc: resident bytes. */
uint64_t census_freed(const struct census *c);
/* One sentence on what most of it is. */
void summary_verdict(const struct summary *s, const struct census *c, char text[SUMMARY_VERDICT]);
