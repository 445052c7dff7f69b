/* SPDX-License-Identifier: MIT */
#pragma once

#include <ucontext.h>

static inline long trapped_call_number(const ucontext_t *c)
{
	return c->uc_mcontext.gregs[REG_RAX];
}

static inline long trapped_call_argument(const ucontext_t *c, int i)
{
	static const int registers[] = { REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9 };

	return c->uc_mcontext.gregs[registers[i]];
}

static inline void trapped_call_return(ucontext_t *c, long result)
{
	c->uc_mcontext.gregs[REG_RAX] = result;
}
