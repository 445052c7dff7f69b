/* SPDX-License-Identifier: MIT */
#include "arch/signal_frame.h"

#include <signal.h>
#include <string.h>
#include <sys/ucontext.h>

#define USER_CODE_SEGMENT 0x33
#define REGISTERS_SAVED (REG_RIP + 1) /* those that a program can put an address in */

/* struct rt_sigframe of the kernel up to its registers (arch/x86/include/asm/sigframe.h; struct ucontext of
 * asm-generic). */
struct saved {
	uint64_t return_address;
	uint64_t flags, link;
	uint64_t stack;
	int32_t stack_flags, pad;
	uint64_t stack_bytes;
	uint64_t registers[NGREG];
	uint64_t vector_registers;
};

/* mov $SYS_rt_sigreturn, %rax; syscall: glibc, and as the shorter form musl. */
static bool is_sigreturn(const struct target_memory *memory, uint64_t address)
{
	static const uint8_t glibc[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t musl[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	uint8_t code[sizeof glibc];
	struct err ignored;

	return target_read(memory, address, code, sizeof code, &ignored) == 0 &&
	       (memcmp(code, glibc, sizeof glibc) == 0 || memcmp(code, musl, sizeof musl) == 0);
}

static bool fits(const struct saved *s, uint64_t address)
{
	uint64_t end = s->stack + s->stack_bytes;

	return s->link == 0 && (s->stack_flags & ~SS_ONSTACK) == 0 && end > s->stack && address >= s->stack &&
	       address < end && sizeof *s <= end - address &&
	       (s->registers[REG_CSGSFS] & 0xffff) == USER_CODE_SEGMENT && s->vector_registers > address &&
	       s->vector_registers < end;
}

bool signal_frame_around(const struct target_memory *memory, uint64_t address, struct signal_frame *frame)
{
	struct saved saved;
	struct err ignored;

	for (unsigned i = 0; i < REGISTERS_SAVED; i++) {
		uint64_t start = address - offsetof(struct saved, registers) - i * sizeof saved.registers[0];
		/* The handler finds its stack as after a call. */
		if (start > address || start % 16 != 8 ||
		    target_read(memory, start, &saved, sizeof saved, &ignored) < 0 || !fits(&saved, start) ||
		    !is_sigreturn(memory, saved.return_address))
			continue;
		*frame = (struct signal_frame){ start, saved.stack, saved.stack + saved.stack_bytes };
		return true;
	}
	return false;
}
