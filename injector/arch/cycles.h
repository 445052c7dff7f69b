/* SPDX-License-Identifier: MIT */
/*
 *   cycles_now()    the counter that stamps of a dump are of: the one that the payload reads (arch_cycles())
 */
#pragma once

#if defined(__x86_64__)
#include "arch/x86_64/cycles.h"
#elif defined(__aarch64__)
#include "arch/aarch64/cycles.h"
#else
#error "memattach knows no counter of cycles of this architecture yet"
#endif
