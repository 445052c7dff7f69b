/* SPDX-License-Identifier: MIT */
#include "arch/hold_stub.h"

void hold_stub_leave(struct registers *regs, uint64_t entry, const uint64_t pushed[HOLD_PUSHED])
{
	for (unsigned i = 0; i < 3; i++)
		regs->general.regs[i] = pushed[i];
	regs->general.regs[8] = pushed[3];
	regs->general.sp += HOLD_PUSHED * sizeof pushed[0];
	regs->general.pc = entry;
}
