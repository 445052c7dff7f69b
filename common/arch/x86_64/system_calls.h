/* SPDX-License-Identifier: MIT */
#pragma once

#define CALLS_ARCH AUDIT_ARCH_X86_64
#define CALLS_END 0x40000000u /* x32 programs */
