/* SPDX-License-Identifier: MIT */
/* Words of the dump that the payload and memattach share. */
#ifndef MEMATTACH_ATOMIC_H
#define MEMATTACH_ATOMIC_H

#include <stdatomic.h>
#include <stdint.h>

static inline _Atomic uint64_t *atomic_u64(uint64_t *word)
{
	return (_Atomic uint64_t *)word;
}

static inline _Atomic uint32_t *atomic_u32(uint32_t *word)
{
	return (_Atomic uint32_t *)word;
}

#endif
