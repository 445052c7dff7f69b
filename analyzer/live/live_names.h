/* SPDX-License-Identifier: MIT */
/*
 * What the stacks of a live heap are called: by the function that holds what they have, as reports choose it, or its
 * file, line or module; and, of a stack, with its callers. Each stack is named once. Names come from the process that
 * reads program files (symbols.h); to ask for few at a time leaves the view responsive.
 */
#pragma once

#include "report/groups.h"
#include "live/live_heap.h"

#define LIVE_NAME_TEXT 1024u

struct live_names {
	enum group_by by; /* BY_STACK … BY_MODULE */
	bool show_std;    /* frames of the standard library hold something, too */
	char **list;      /* by group; 0: those that have no name yet */
	size_t count;
	struct map name_of; /* hash -> group; collisions step by one */
};

void live_names_init(struct live_names *names, bool show_std);
void live_names_done(struct live_names *names);
/* From now on by something else, or of another heap: all groups are gone. */
void live_names_set(struct live_names *names, struct live_heap *heap, enum group_by by);

/* Puts as many more stacks into their groups; *left: there are more. -ENOMEM. */
int live_names_group(struct live_names *names, struct live_heap *heap, size_t limit, bool *left) WARN_UNUSED;
/* Says which stacks are about to be named: many at once take less than one after the other. */
void live_names_want(const struct live_heap *heap, const struct live_stack *stack);
/* What a group is called, printable. */
const char *live_names_text(const struct live_names *names, uint32_t group);
/* "function file:line < caller < caller …", printable, as much as there is room for. */
void live_names_stack(const struct live_names *names, const struct live_heap *heap, const struct live_stack *stack,
                      char out[LIVE_NAME_TEXT]);
/* The whole stack, the allocator's frames too, a line for each function: gives count of them from first on to `line`,
 * printable. Returns how many there are. */
size_t live_names_whole(const struct live_heap *heap, const struct live_stack *stack, size_t first, size_t count,
                        void (*line)(void *arg, const char *text), void *arg);
