/* SPDX-License-Identifier: MIT */
/* A system call that a filter has turned into SIGSYS: its number, its arguments, and where its result belongs. */
#ifndef MEMATTACH_TRAPPED_CALL_H
#define MEMATTACH_TRAPPED_CALL_H

#include <linux/audit.h>
#include <ucontext.h>

#define TRAPPED_CALL_ARCH AUDIT_ARCH_X86_64

static inline long trapped_call_number(const ucontext_t *c)
{
	return c->uc_mcontext.gregs[REG_RAX];
}

static inline long trapped_call_argument(const ucontext_t *c, int i)
{
	static const int registers[] = { REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9 };

	return c->uc_mcontext.gregs[registers[i]];
}

/* -errno, or what the call returns. */
static inline void trapped_call_return(ucontext_t *c, long result)
{
	c->uc_mcontext.gregs[REG_RAX] = result;
}

#endif
