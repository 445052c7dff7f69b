/* SPDX-License-Identifier: MIT */
#include "../hold_stub.h"

void hold_leave(struct user_regs_struct *regs, uint64_t entry, const uint64_t pushed[HOLD_PUSHED])
{
	regs->rdx = pushed[0];
	regs->rsi = pushed[1];
	regs->rdi = pushed[2];
	regs->rsp += HOLD_PUSHED * sizeof pushed[0];
	regs->rip = entry;
	regs->orig_rax = UINT64_MAX; /* the call in which it slept is not started again */
}

bool hold_calls_main(const struct user_regs_struct *regs, uint64_t argc, uint64_t argv, uint64_t *main_address)
{
	*main_address = regs->rdi;
	return regs->rsi == argc && regs->rdx == argv && regs->rdi != 0;
}

void hold_replace_main(struct user_regs_struct *regs, uint64_t function)
{
	regs->rdi = function;
}
