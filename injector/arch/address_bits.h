/* SPDX-License-Identifier: MIT */
/*
 *   ADDRESS_BITS    of the addresses that programs have, unless they ask for higher ones
 */
#pragma once

#if defined(__x86_64__)
#define ADDRESS_BITS 47
#elif defined(__aarch64__)
#define ADDRESS_BITS 48
#else
#error "memattach does not know the address space of this architecture"
#endif
