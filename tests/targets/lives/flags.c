/* SPDX-License-Identifier: MIT */
/*
 * Spins without a system call while the flags (direction flag and all arithmetic ones), the x87 control word, the x87
 * stack and the MXCSR hold values that no compiled code would leave there; then compares.
 */
#include "victim.h"

#include <string.h>

#define SPINS 3000000
#define FLAGS_MASK 0xcd5ul /* CF PF AF ZF SF DF OF */

struct state {
	uint64_t flags;
	uint32_t mxcsr;
	uint16_t control;
	double top;
};

/* The loop changes no flag: lea and jrcxz only. */
static void spin(const struct state *in, struct state *out)
{
	uint64_t flags = 0, spins = SPINS;
	uint32_t mxcsr_old;
	uint16_t control_old;

	__asm__ volatile("stmxcsr %[mxcsr_old]\n\t"
	                 "fnstcw %[control_old]\n\t"
	                 "ldmxcsr %[mxcsr_in]\n\t"
	                 "fldcw %[control_in]\n\t"
	                 "fldl %[top_in]\n\t"
	                 "pushq %[flags_in]\n\t"
	                 "popfq\n"
	                 "1:\n\t"
	                 "lea -1(%%rcx), %%rcx\n\t"
	                 "jrcxz 2f\n\t"
	                 "jmp 1b\n"
	                 "2:\n\t"
	                 "pushfq\n\t"
	                 "popq %[flags_out]\n\t"
	                 "cld\n\t"
	                 "fstpl %[top_out]\n\t"
	                 "fnstcw %[control_out]\n\t"
	                 "stmxcsr %[mxcsr_out]\n\t"
	                 "fldcw %[control_old]\n\t"
	                 "ldmxcsr %[mxcsr_old]\n\t"
	                 : [flags_out] "=&r"(flags), [top_out] "=m"(out->top), [control_out] "=m"(out->control),
	                   [mxcsr_out] "=m"(out->mxcsr), [control_old] "=m"(control_old), [mxcsr_old] "=m"(mxcsr_old),
	                   "+c"(spins)
	                 : [flags_in] "r"(in->flags), [top_in] "m"(in->top), [control_in] "m"(in->control),
	                   [mxcsr_in] "m"(in->mxcsr)
	                 : "cc", "memory", "st");
	out->flags = flags & FLAGS_MASK;
}

int main(void)
{
	uint64_t random = 88172645463325252ull;

	victim_start("flags");
	victim_ready();
	while (!victim_done()) {
		struct state in = { 0 }, out = { 0 };
		uint64_t bits = victim_random(&random);
		in.flags = (bits & FLAGS_MASK) | 0x202;
		in.mxcsr = 0x1f80 | (bits >> 20 & 0xe03f); /* flush to zero, rounding, sticky exceptions */
		in.control = 0x7f | (bits >> 40 & 0xf00);  /* precision, rounding */
		in.top = (double)(bits >> 12);
		spin(&in, &out);
		if (out.flags != (in.flags & FLAGS_MASK))
			victim_wrong("flags were %lx, are %lx", in.flags & FLAGS_MASK, out.flags);
		if (out.mxcsr != in.mxcsr)
			victim_wrong("mxcsr was %x, is %x", in.mxcsr, out.mxcsr);
		if (out.control != in.control)
			victim_wrong("the x87 control word was %x, is %x", in.control, out.control);
		if (memcmp(&out.top, &in.top, sizeof in.top) != 0 && (in.control & 0x300) == 0x300)
			victim_wrong("the x87 stack changed");
		victim_round();
	}
	return victim_report();
}
