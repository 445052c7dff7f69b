/* SPDX-License-Identifier: MIT */
#include "arch/signal_frame.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

_Static_assert(sizeof(siginfo_t) == 128 &&
                       SIGNAL_CONTEXT_REGISTERS ==
                               128 + offsetof(ucontext_t, uc_mcontext) + offsetof(mcontext_t, regs) &&
                       SIGNAL_CONTEXT_SP == 128 + offsetof(ucontext_t, uc_mcontext) + offsetof(mcontext_t, sp) &&
                       SIGNAL_CONTEXT_PC == 128 + offsetof(ucontext_t, uc_mcontext) + offsetof(mcontext_t, pc),
               "rt_sigframe");

/* mov x8, #SYS_rt_sigreturn; svc #0: the kernel's, and musl's. */
bool signal_frame_is_return(const struct target_memory *memory, uint64_t address)
{
	static const uint32_t instructions[] = { 0xd2801168, 0xd4000001 };
	uint32_t code[2];

	return address % 4 == 0 && target_read(memory, address, code, sizeof code, ERR_IGNORED) == 0 &&
	       memcmp(code, instructions, sizeof code) == 0;
}
