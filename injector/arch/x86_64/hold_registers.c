/* SPDX-License-Identifier: MIT */
#include "arch/hold_stub.h"

void hold_leave(struct user_regs_struct *regs, uint64_t entry, const uint64_t pushed[HOLD_PUSHED])
{
	regs->rdx = pushed[0];
	regs->rsi = pushed[1];
	regs->rdi = pushed[2];
	regs->rsp += HOLD_PUSHED * sizeof pushed[0];
	regs->rip = entry;
	regs->orig_rax = UINT64_MAX; /* the call in which it slept is not started again */
}
