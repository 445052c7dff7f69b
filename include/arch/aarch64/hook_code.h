/* SPDX-License-Identifier: MIT */
#pragma once

#define TRAMPOLINE_CODE_BYTES 256
#define TRAMPOLINE_ALLOCATE 0
#define TRAMPOLINE_BELOW 56
#define TRAMPOLINE_RELEASE 64
#define TRAMPOLINE_OTHER 108
#define TRAMPOLINE_POOL_ALLOCATE 128
#define TRAMPOLINE_POOL_RELEASE 196

#define FILTER_SHIFT 28

#define DETOUR_BYTES 256
#define DETOUR_COPY 48
/* The same: only x16 and x17 are used, which a call may always change. */
#define DETOUR_KEEPING_RESUME 48
#define DETOUR_KEEPING_COPY 48
