/* SPDX-License-Identifier: MIT */
/* The interned stacks: each distinct stack is stored once in the dump and known by a reference of 32 bits. */
#ifndef MEMATTACH_PAYLOAD_STACK_TABLE_H
#define MEMATTACH_PAYLOAD_STACK_TABLE_H

#include <stdint.h>

#include "dump_format.h"

/* The stack with this hash (stack_hash.h) and its reference if it is stored, else NULL. */
struct dump_stack *stack_table_find(uint64_t hash, uint32_t *reference);
/* The stack with this hash, of count frames, at most DUMP_FRAMES_MAX, and its reference; stored now if it is new. NULL:
 * no room. */
struct dump_stack *stack_table_intern(uint64_t hash, const uint64_t *frames, uint32_t count, uint32_t flags,
                                      uint32_t *reference);

#endif
