/* SPDX-License-Identifier: MIT */
#pragma once

/* struct ucontext */
#define SIGNAL_CONTEXT_FP (40 + 8 * 10)
#define SIGNAL_CONTEXT_SP (40 + 8 * 15)
#define SIGNAL_CONTEXT_PC (40 + 8 * 16)
#define SIGNAL_CONTEXT_LINK 0
