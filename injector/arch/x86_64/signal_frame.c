/* SPDX-License-Identifier: MIT */
#include "arch/signal_frame.h"

#include <stddef.h>
#include <string.h>
#include <sys/ucontext.h>

_Static_assert(SIGNAL_CONTEXT_FP == offsetof(ucontext_t, uc_mcontext.gregs[REG_RBP]) &&
                       SIGNAL_CONTEXT_SP == offsetof(ucontext_t, uc_mcontext.gregs[REG_RSP]) &&
                       SIGNAL_CONTEXT_PC == offsetof(ucontext_t, uc_mcontext.gregs[REG_RIP]),
               "ucontext");

/* mov $SYS_rt_sigreturn, %rax; syscall: glibc, and as the shorter form musl. */
bool signal_frame_is_return(const struct target_memory *memory, uint64_t address)
{
	static const uint8_t glibc[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t musl[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	uint8_t code[sizeof glibc];

	return target_read(memory, address, code, sizeof code, ERR_IGNORED) == 0 &&
	       (memcmp(code, glibc, sizeof glibc) == 0 || memcmp(code, musl, sizeof musl) == 0);
}
