/* SPDX-License-Identifier: MIT */
/*
 * The words of a live stack, for threads whose stack cannot be walked to its end: the one search of stacks. What is
 * found may be old; what is not found is not there, within the 256 KiB above the stack pointer that are searched.
 */
#pragma once

#include <stdbool.h>

#include "process/target_read.h"

#define STACK_RED_ZONE_BYTES 128u /* below the stack pointer that are alive, too */

struct address_range {
	uint64_t start;
	uint64_t end;
};

bool address_ranges_hold(const struct address_range *ranges, unsigned count, uint64_t address);
/* Does a word hold an address of a range? */
bool stack_search_holds(const struct target_memory *memory, uint64_t sp, const struct address_range *ranges,
                        unsigned range_count);
/* Is a hook alive there, or was code in one of the ranges interrupted by a signal whose handler runs? */
bool stack_search_in_hook(const struct target_memory *memory, uint64_t sp, const struct address_range *ranges,
                          unsigned range_count);
