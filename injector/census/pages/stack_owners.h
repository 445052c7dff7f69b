/* SPDX-License-Identifier: MIT */
/*
 * Which mappings are stacks of threads, and of which: where the stack pointer of a thread that sleeps is in memory of
 * its own above a guard. So the C library lays out a stack; fibers and goroutines may run anywhere.
 */
#pragma once

#include "maps/maps.h"
#include "process/target.h"

struct stack_owners {
	struct stack_owner {
		uint64_t start; /* of the mapping */
		char name[32];  /* of the thread */
	} * list;               /* by start, which may come more than once */
	size_t count;
	size_t threads, unknown; /* whose stack is not known, for instance because they run */
};

/* stack_owners_free afterwards; on failure, too. */
int stack_owners_find(struct stack_owners *s, const struct target *t, const struct maps *maps,
                      struct err *e) WARN_UNUSED;
/* The name of the thread whose stack is this mapping, or NULL. */
const char *stack_owners_name(const struct stack_owners *s, const struct mapping *m);
void stack_owners_free(struct stack_owners *s);
