/* SPDX-License-Identifier: MIT */
#pragma once

#include <ucontext.h>

#define TRAPPED_CALL_NUMBER 8 /* x8; arguments and result are in x0 and up */

static inline long trapped_call_number(const ucontext_t *c)
{
	return (long)c->uc_mcontext.regs[TRAPPED_CALL_NUMBER];
}

static inline long trapped_call_argument(const ucontext_t *c, int i)
{
	return (long)c->uc_mcontext.regs[i];
}

static inline void trapped_call_return(ucontext_t *c, long result)
{
	c->uc_mcontext.regs[0] = (unsigned long long)result;
}
