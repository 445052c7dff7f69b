/* SPDX-License-Identifier: MIT */
/*
 * The unwind tables as the payload reads them: the index in force, the rule of a pc, and what is known about an address. The
 * index is validated against the mapped size each time it is opened, each module's rows when they are searched. A global
 * cache of pc -> rule spares nearly all searches.
 */
#ifndef MEMATTACH_PAYLOAD_UNWIND_RULES_H
#define MEMATTACH_PAYLOAD_UNWIND_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "payload.h"
#include "unwind_table.h"

/* The index that was in force when it was opened. */
struct unwind_view {
	const struct unwind_module *modules;
	const struct unwind_range *ranges;
	uint32_t module_count;
	uint32_t range_count;
	uint32_t generation;
};

struct unwind_rule {
	uint32_t rule;   /* as in unwind_table.h; UNWIND_NONE if nothing is known */
	uint32_t module; /* id, 0: in no module */
};

#define UNWIND_CACHE_LOG2 13

struct unwind_cache_entry {
	uint64_t mixed; /* (atomic) key ^ value */
	uint64_t value; /* (atomic) rule, module id above it */
};

extern struct unwind_cache_entry unwind_cache[1u << UNWIND_CACHE_LOG2] HIDDEN;

/* An empty view if there is no valid index. */
void unwind_view_open(struct unwind_view *view);
struct unwind_rule unwind_rule_find(const struct unwind_view *view, uint64_t pc);
/* The range that holds address and has all of flags, or NULL. */
const struct unwind_range *unwind_range_find(const struct unwind_view *view, uint64_t address, uint32_t flags);

#endif
