/* SPDX-License-Identifier: MIT */
/* The nop that ends where a function begins: an alias of that (arch/function_alias.h), and so no place for an island.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* How many of the bytes that end there it has, 0: none does. */
unsigned nop_before(const uint8_t *end, size_t bytes);
