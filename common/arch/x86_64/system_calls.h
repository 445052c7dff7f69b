/* SPDX-License-Identifier: MIT */
#ifndef MEMATTACH_X86_64_SYSTEM_CALLS_H
#define MEMATTACH_X86_64_SYSTEM_CALLS_H

#define CALLS_ARCH AUDIT_ARCH_X86_64
#define CALLS_END 0x40000000u /* x32 programs */

#endif
