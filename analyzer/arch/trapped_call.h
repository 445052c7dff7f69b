/* SPDX-License-Identifier: MIT */
/* A system call that a filter has turned into SIGSYS: its number, its arguments, and where its result belongs, in the
 * ucontext that the handler gets. The result is -errno, or what the call returns. */
#pragma once

#if defined(__x86_64__)
#include "arch/x86_64/trapped_call.h"
#elif defined(__aarch64__)
#include "arch/aarch64/trapped_call.h"
#else
#error "memanalyze does not know the system calls of this architecture yet"
#endif
