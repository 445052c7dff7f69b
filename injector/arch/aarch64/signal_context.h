/* SPDX-License-Identifier: MIT */
#pragma once

/* struct rt_sigframe: siginfo, then struct ucontext. */
#define SIGNAL_CONTEXT_REGISTERS (128 + 176 + 8)
#define SIGNAL_CONTEXT_FP (SIGNAL_CONTEXT_REGISTERS + 8 * 29)
#define SIGNAL_CONTEXT_LINK (SIGNAL_CONTEXT_REGISTERS + 8 * 30)
#define SIGNAL_CONTEXT_SP (SIGNAL_CONTEXT_REGISTERS + 8 * 31)
#define SIGNAL_CONTEXT_PC (SIGNAL_CONTEXT_REGISTERS + 8 * 32)
