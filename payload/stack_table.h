/* SPDX-License-Identifier: MIT */
/* The interned stacks: each distinct stack is stored once in the dump and known by a reference of 32 bits. */
#ifndef MEMATTACH_PAYLOAD_STACK_TABLE_H
#define MEMATTACH_PAYLOAD_STACK_TABLE_H

#include <stdint.h>

#include "dump_format.h"

/* Reference of the stack with this hash (stack_hash.h) if it is stored, else 0. */
uint32_t stack_table_find(uint64_t hash);
/* Reference of the stack with this hash, of count frames, at most DUMP_FRAMES_MAX; stored now if it is new.
 * 0: no room. */
uint32_t stack_table_intern(uint64_t hash, const uint64_t *frames, uint32_t count, uint32_t flags);

#endif
