/* SPDX-License-Identifier: MIT */
/*
 *   ADDRESS_BITS    of the addresses that programs have, unless they ask for higher ones
 *   PAGE_LOG_MOST   2^PAGE_LOG_MOST bytes have the largest pages of any kernel: allocators may be built for them
 */
#pragma once

#if defined(__x86_64__)
#define ADDRESS_BITS 47
#define PAGE_LOG_MOST 12
#elif defined(__aarch64__)
#define ADDRESS_BITS 48
#define PAGE_LOG_MOST 16
#else
#error "memattach does not know the address space of this architecture"
#endif
