/* SPDX-License-Identifier: MIT */
/*
 * System calls by their numbers (SYS_*), as filters and lists of calls use them.
 *
 *   CALLS_ARCH  the architecture, AUDIT_ARCH_*: numbers mean nothing without
 *   CALLS_END   from this number on there are no calls of programs for this machine
 *   CALL_NONE   what the machine's header makes of SYS_name where the machine has no such call: no call has this number
 */
#pragma once

#include <linux/audit.h>
#include <sys/syscall.h>

#define CALL_NONE 0x7fffffff

#if defined(__x86_64__)
#include "arch/x86_64/system_calls.h"
#elif defined(__aarch64__)
#include "arch/aarch64/system_calls.h"
#else
#error "memattach does not know the system calls of this architecture yet"
#endif
