/* SPDX-License-Identifier: MIT */
/* Reading the objects of an interpreter, as python_walk.h and code_object.h argue that it may be done. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "arch/machine.h"

#define PYTHON_LOWEST 0x10000u /* below it nothing is mapped (vm.mmap_min_addr) */

/* May it be the address of an object? */
static inline bool python_is_address(uint64_t address)
{
	return address % 8 == 0 && address >= PYTHON_LOWEST && address < ARCH_ADDRESS_END;
}

static inline uint64_t python_word(uint64_t address, uint32_t offset)
{
	return *(const volatile uint64_t *)(uintptr_t)(address + offset);
}

static inline int32_t python_int(uint64_t address, uint32_t offset)
{
	return *(const volatile int32_t *)(uintptr_t)(address + offset);
}

static inline uint8_t python_byte(uint64_t address, uint32_t offset)
{
	return *(const volatile uint8_t *)(uintptr_t)(address + offset);
}

/* Eight bytes at any address. */
static inline uint64_t python_bytes(uint64_t address)
{
	uint64_t word;

	__builtin_memcpy(&word, (const void *)(uintptr_t)address, sizeof word);
	return word;
}
