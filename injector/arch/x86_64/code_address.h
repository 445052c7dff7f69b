/* SPDX-License-Identifier: MIT */
#ifndef MEMATTACH_X86_64_CODE_ADDRESS_H
#define MEMATTACH_X86_64_CODE_ADDRESS_H

#include <stdint.h>

static inline uint64_t code_address(uint64_t word)
{
	return word;
}

#endif
