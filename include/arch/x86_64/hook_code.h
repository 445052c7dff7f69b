/* SPDX-License-Identifier: MIT */
#pragma once

#define TRAMPOLINE_CODE_BYTES 256
#define TRAMPOLINE_ALLOCATE 0
#define TRAMPOLINE_BELOW 38
#define TRAMPOLINE_RELEASE 64
#define TRAMPOLINE_OTHER 112
#define TRAMPOLINE_POOL_ALLOCATE 128
#define TRAMPOLINE_POOL_RELEASE 192

/* rax and r11. The hook uses the word below, and a push leaves all three alone. */
#define TRAMPOLINE_KEPT_FIRST (-16)
#define TRAMPOLINE_KEPT_SECOND (-24)

#define FILTER_SHIFT 28

#define DETOUR_BYTES 128
#define DETOUR_COPY 40
#define DETOUR_KEEPING_RESUME 48
#define DETOUR_KEEPING_COPY 58
