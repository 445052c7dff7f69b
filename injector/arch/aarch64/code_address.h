/* SPDX-License-Identifier: MIT */
/* Programs have the lower half of the address space: in the bits above, a signature (PAC) and a tag are removed. */
#pragma once

#include <stdint.h>

static inline uint64_t code_address(uint64_t word)
{
	return word & 0x0000ffffffffffffull;
}
