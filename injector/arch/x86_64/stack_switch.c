/* SPDX-License-Identifier: MIT */
#include "arch/stack_switch.h"

/* mov, xchg with %rsp as destination: REX.W, opcode, ModRM. */
bool stack_switch_at(const uint8_t code[STACK_SWITCH_BYTES])
{
	uint8_t rex = code[0], modrm = code[2];
	bool into_rm = !(rex & 1) && (modrm & 0xc7) == 0xc4, into_reg = !(rex & 4) && (modrm & 0x38) == 0x20;

	if ((rex & 0xf8) != 0x48)
		return false;
	switch (code[1]) {
	case 0x87: return into_rm || into_reg;
	case 0x89: return into_rm;
	case 0x8b: return into_reg;
	case 0x94: return rex == 0x48; /* xchg %rax, %rsp */
	default: return false;
	}
}
