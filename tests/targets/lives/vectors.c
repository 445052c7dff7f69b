/* SPDX-License-Identifier: MIT */
/*
 * Keeps patterns in the general registers, the red zone and the widest vector registers that the CPU has while it spins
 * without a system call; then compares. A stop in the spin must give all of them back.
 */
#include "victim.h"

#include <string.h>

/* Layout known to vectors_spin.S. */
struct state {
	_Alignas(64) uint8_t vector[32][64];
	uint64_t mask[8];     /* k0 … k7 */
	uint64_t general[10]; /* rbx rbp r8 … r15 */
	uint64_t red_zone[15];
	uint64_t mxcsr;
	uint64_t x87;
};
_Static_assert(offsetof(struct state, mask) == 2048, "vectors_spin.S");
_Static_assert(offsetof(struct state, general) == 2112, "vectors_spin.S");
_Static_assert(offsetof(struct state, red_zone) == 2192, "vectors_spin.S");
_Static_assert(offsetof(struct state, mxcsr) == 2312, "vectors_spin.S");
_Static_assert(offsetof(struct state, x87) == 2320, "vectors_spin.S");

void spin_sse(const struct state *in, struct state *out, uint64_t spins);
void spin_avx(const struct state *in, struct state *out, uint64_t spins);
void spin_avx512(const struct state *in, struct state *out, uint64_t spins);

static void compare(const char *what, const void *in, const void *out, size_t bytes)
{
	if (memcmp(in, out, bytes))
		victim_wrong("%s changed while they were spinning", what);
}

int main(void)
{
	static struct state in, out;
	uint64_t random = 2463534242u;
	void (*spin)(const struct state *, struct state *, uint64_t) = spin_sse;
	size_t width = 16, count = 16;

	victim_start("vectors");
	if (__builtin_cpu_supports("avx")) {
		spin = spin_avx;
		width = 32;
	}
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) {
		spin = spin_avx512;
		width = 64;
		count = 32;
	}
	victim_say("WIDTH %zu", width);
	victim_ready();
	while (!victim_done()) {
		for (size_t i = 0; i < sizeof in / 8; i++)
			((uint64_t *)&in)[i] = victim_random(&random);
		in.mxcsr = 0x1f80 | (random >> 3 & 0x6000); /* a rounding mode, no exceptions */
		in.x87 = 0x37f;
		memset(&out, 0, sizeof out);
		spin(&in, &out, 3000000);
		for (size_t i = 0; i < count; i++)
			compare("vector registers", in.vector[i], out.vector[i], width);
		if (width == 64)
			compare("mask registers", in.mask, out.mask, sizeof in.mask);
		compare("general registers", in.general, out.general, sizeof in.general);
		compare("words of the red zone", in.red_zone, out.red_zone, sizeof in.red_zone);
		compare("rounding modes", &in.mxcsr, &out.mxcsr, 4);
		victim_round();
	}
	return victim_report();
}
