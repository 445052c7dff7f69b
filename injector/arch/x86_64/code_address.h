/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

static inline uint64_t code_address(uint64_t word)
{
	return word;
}
