/* SPDX-License-Identifier: MIT */
#include "arch/hold_stub.h"

void hold_stub_leave(struct registers *regs, uint64_t entry, const uint64_t pushed[HOLD_PUSHED])
{
	regs->general.rdx = pushed[0];
	regs->general.rsi = pushed[1];
	regs->general.rdi = pushed[2];
	regs->general.rsp += HOLD_PUSHED * sizeof pushed[0];
	regs->general.rip = entry;
	regs->general.orig_rax = UINT64_MAX; /* the call in which it slept is not started again */
}
