/* SPDX-License-Identifier: MIT */
/*
 * Spends a third of its time in a restartable sequence of its own (the area is the one that glibc registered). The
 * kernel must abort the sequence whenever the thread did not run through it undisturbed: a sequence that was committed
 * though the thread was switched away meanwhile is wrong. Says how often it was aborted.
 *
 * That it was switched away is seen by a count that is read before and after, and by a gap in the time inside. The gap
 * alone may be an interrupt, or a hypervisor that is busy elsewhere; the count alone a switch outside the sequence. On
 * a busy machine the two come together once in a while, so rounds that took longer outside than a switch hides in are
 * not judged.
 */
#include "victim.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/rseq.h>
#include <x86intrin.h>

#define ROUND_CYCLES 20000000ull
#define GAP_CYCLES 100000ull /* more between two reads of the counter: something else ran */
#define OUTSIDE_CYCLES                                                                                                 \
	12000ull /* two system calls take less at most times; a switch to another thread and back takes more */

static struct rseq *area(void)
{
	return (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

static unsigned long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (unsigned long)(usage.ru_nvcsw + usage.ru_nivcsw);
}

/*
 * Spins for cycles of the counter inside a sequence. Returns true if it was committed; *gap: longest time between two
 * reads, *inside: time between the first and the last.
 */
static __attribute__((noinline)) bool sequence(uint64_t cycles, uint64_t *gap, uint64_t *inside)
{
	uint64_t longest = 0, committed = 0, spun = 0;
	uint64_t *section = (uint64_t *)(uintptr_t)&area()->rseq_cs;

	__asm__ volatile goto(".pushsection __rseq_cs, \"aw\"\n\t"
	                      ".balign 32\n"
	                      "3:\n\t"
	                      ".long 0, 0\n\t"
	                      ".quad 1f, 2f - 1f, 4f\n\t"
	                      ".popsection\n\t"
	                      "rdtsc\n\t"
	                      "shl $32, %%rdx\n\t"
	                      "or %%rdx, %%rax\n\t"
	                      "mov %%rax, %%r8\n\t"  /* start */
	                      "mov %%rax, %%r9\n\t"  /* last read */
	                      "xor %%r10, %%r10\n\t" /* longest gap */
	                      "lea 3b(%%rip), %%rax\n\t"
	                      "mov %%rax, (%[section])\n"
	                      "1:\n\t"
	                      "rdtsc\n\t"
	                      "shl $32, %%rdx\n\t"
	                      "or %%rdx, %%rax\n\t"
	                      "mov %%rax, %%r11\n\t"
	                      "sub %%r9, %%r11\n\t"
	                      "cmp %%r10, %%r11\n\t"
	                      "cmova %%r11, %%r10\n\t"
	                      "mov %%rax, %%r9\n\t"
	                      "sub %%r8, %%rax\n\t"
	                      "cmp %[cycles], %%rax\n\t"
	                      "jb 1b\n\t"
	                      "movq $1, (%[committed])\n"
	                      "2:\n\t"
	                      "movq $0, (%[section])\n\t"
	                      "mov %%r10, (%[longest])\n\t"
	                      "mov %%rax, (%[spun])\n\t"
	                      "jmp %l[out]\n\t"
	                      ".pushsection .text.unlikely, \"ax\"\n\t"
	                      ".long 0x53053053\n" /* the signature that glibc registers */
	                      "4:\n\t"
	                      "movq $0, (%[section])\n\t"
	                      "jmp %l[aborted]\n\t"
	                      ".popsection\n\t"
	                      :
	                      : [section] "r"(section), [cycles] "r"(cycles), [committed] "r"(&committed),
	                        [longest] "r"(&longest), [spun] "r"(&spun)
	                      : "rax", "rdx", "r8", "r9", "r10", "r11", "cc", "memory"
	                      : out, aborted);
out:
	*gap = longest;
	*inside = spun;
	return committed != 0;
aborted:
	return false;
}

int main(void)
{
	unsigned long aborted = 0, committed = 0, rounds = 0;
	uint64_t least = UINT64_MAX; /* time outside */

	victim_start("rseq");
	if (__rseq_size == 0) {
		victim_say("CANNOT the C library registered no rseq area");
		victim_ready();
		return 77;
	}
	victim_ready();
	while (!victim_done()) {
		uint64_t gap = 0, inside = 0, begun = __rdtsc();
		unsigned long before = switches();
		/* On a loaded machine a long sequence is never left alone; a short one is. */
		if (sequence(rounds++ % 2 ? ROUND_CYCLES / 100 : ROUND_CYCLES, &gap, &inside)) {
			bool away = switches() != before && gap > GAP_CYCLES;
			uint64_t outside = __rdtsc() - begun - inside;
			committed++;
			least = outside < least ? outside : least;
			if (away && (outside < OUTSIDE_CYCLES || outside < 4 * least))
				victim_wrong("a sequence was committed though the thread was away for %lu cycles",
				             (unsigned long)gap);
		} else {
			aborted++;
		}
		/* In system calls for a good part: only there may it be borrowed where sequences cannot be told. */
		for (uint64_t start = __rdtsc(); __rdtsc() - start < ROUND_CYCLES;)
			(void)switches();
		victim_round();
	}
	victim_say("ABORTED %lu COMMITTED %lu", aborted, committed);
	return victim_report();
}
