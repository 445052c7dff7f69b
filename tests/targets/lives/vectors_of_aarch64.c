/* SPDX-License-Identifier: MIT */
/*
 * Keeps patterns in all vector registers, those of SVE with its predicates and FFR where the processor has it, and in
 * general registers while it spins without a system call; then compares. A stop in the spin must give all of them back.
 */
#include "victim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>

#ifndef PR_SVE_SET_VL
#define PR_SVE_SET_VL 50
#define PR_SVE_GET_VL 51
#endif
#define VECTOR_LENGTH_MASK 0xffff
#define SVE (1ul << 22) /* HWCAP_SVE */
#define LENGTH_MAX 256
#define SPINS 3000000

/* Layout known to vectors_of_aarch64_spin.S; rows of vectors and predicates are as long as the registers are. */
struct state {
	_Alignas(64) uint8_t vector[32 * LENGTH_MAX];
	uint8_t predicate[16 * LENGTH_MAX / 8];
	uint8_t first_fault[LENGTH_MAX / 8];
	uint64_t general[10]; /* x19 to x28 */
	uint64_t control, status;
};
_Static_assert(offsetof(struct state, predicate) == 8192, "vectors_of_aarch64_spin.S");
_Static_assert(offsetof(struct state, first_fault) == 8704, "vectors_of_aarch64_spin.S");
_Static_assert(offsetof(struct state, general) == 8736, "vectors_of_aarch64_spin.S");
_Static_assert(offsetof(struct state, control) == 8816, "vectors_of_aarch64_spin.S");

void spin_neon(const struct state *in, struct state *out, uint64_t spins);
void spin_sve(const struct state *in, struct state *out, uint64_t spins);

static unsigned length; /* of a vector of SVE, in bytes; 0: there is none */

static void compare(const char *what, const void *in, const void *out, size_t bytes)
{
	if (memcmp(in, out, bytes))
		victim_wrong("%s changed while they were spinning", what);
}

static void fill(struct state *in, uint64_t *random)
{
	for (size_t i = 0; i < sizeof *in / 8; i++)
		((uint64_t *)in)[i] = victim_random(random);
	/* Its first bits alone may be set. */
	const unsigned set = (unsigned)(*random % (LENGTH_MAX + 1));
	for (unsigned i = 0; i < LENGTH_MAX; i++)
		in->first_fault[i / 8] = (uint8_t)((in->first_fault[i / 8] & ~(1u << i % 8)) | (i < set) << i % 8);
	in->control = *random & 0xc00000; /* a rounding mode */
	in->status = *random >> 3 & 0x1f;
}

static void check(const struct state *in, const struct state *out)
{
	compare("vector registers", in->vector, out->vector, 32 * (length ? length : 16));
	compare("predicates", in->predicate, out->predicate, 16 * length / 8);
	compare("FFR", in->first_fault, out->first_fault, length / 8);
	compare("general registers", in->general, out->general, sizeof in->general);
	compare("rounding mode and flags", &in->control, &out->control, 16);
}

int main(int argc, char **argv)
{
	static struct state in, out;
	uint64_t random = 2463534242u;

	victim_start("vectors");
	if (getauxval(AT_HWCAP) & SVE) {
		if (argc > 1)
			prctl(PR_SVE_SET_VL, atoi(argv[1]), 0, 0, 0);
		length = (unsigned)prctl(PR_SVE_GET_VL, 0, 0, 0, 0) & VECTOR_LENGTH_MASK;
	}
	victim_say("WIDTH %u", length);
	victim_ready();
	while (!victim_done()) {
		fill(&in, &random);
		memset(&out, 0, sizeof out);
		(length ? spin_sve : spin_neon)(&in, &out, SPINS);
		check(&in, &out);
		victim_round();
	}
	return victim_report();
}
