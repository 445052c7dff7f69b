/* SPDX-License-Identifier: MIT */
/* There is none: moves bring a thread back, and the stub has saved its vector registers. */
#include "arch/stub_frame.h"

uint64_t stub_frame_least(void)
{
	return 0;
}

uint64_t stub_frame_usual(void)
{
	return 0;
}

bool stub_frame_note(pid_t tid, const struct registers *regs, struct stub_frame *frame, uint64_t *frame_bytes)
{
	(void)tid, (void)regs, (void)frame;
	*frame_bytes = 0;
	return true;
}

bool stub_frame_give_vectors_back(pid_t tid, const struct stub_frame *frame)
{
	(void)tid, (void)frame;
	return true;
}
