/* SPDX-License-Identifier: MIT */
/*
 * Who holds what (holders.h), and what nothing points to (reach.h), step by step: census_take follows all pointers that
 * it finds while the process runs (census_lost_look); who stops it calls census_lost_settle then, and census_lost_count
 * when it runs again. As soon as it is clear that it cannot be known, lost.why says so, and the steps that are left do
 * nothing.
 */
#pragma once

#include "census/census.h"
#include "process/clones/clone_prospect.h"

/* -ENOMEM. */
int census_lost_look(struct census *c, const struct census_wish *wish, struct err *e) WARN_UNUSED;
/* How long it would be stopped, by how long a part of its memory takes to be read. */
uint64_t census_lost_expected_ns(struct census *c);
/* As reach_settle; until_ns: until then at most. */
int census_lost_settle(struct census *c, const struct reach_stop *stop, uint64_t until_ns, struct err *e) WARN_UNUSED;
/* What is read in the place of the process. */
struct census_clone {
	const struct target *target; /* the clone */
	const struct target_memory *memory;
	const struct clone_prospect *prospect;
	const struct maps *maps; /* of the process, when it was made */
	bool (*goes_on)(void *context);
	void *context;
};
/* The same in a clone. -ETIME: goes_on has refused. */
int census_lost_settle_in_clone(struct census *c, const struct reach_stop *stop, const struct census_clone *clone,
                                struct err *e) WARN_UNUSED;
int census_lost_count(struct census *c, struct err *e) WARN_UNUSED;
/* Says why it is not known; the first reason stays. */
void census_lost_is_unknown(struct census *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* For that of requests that are under way. */
void census_lost_has_requests(struct census *c);
void census_lost_free(struct census *c);

/* Of census.c: the mappings and pages of now. */
int census_scan(const struct target *t, struct maps *maps, struct resident_pages *pages, struct err *e) WARN_UNUSED;
