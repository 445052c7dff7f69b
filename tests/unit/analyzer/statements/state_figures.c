/* SPDX-License-Identifier: MIT */
/* Figures of stacks of one size of blocks, where so few of them are missed that one more or less matters; what the
 * stacks without a sample hold; what is said of the growth of private memory. */
#include "statements.h"
#include "report/unseen.h"

#define FIGURE_RATE 65536u
#define MEMORY_RATE 262144u

/* Blocks of so many rates, so many that one of them is missed in a part of the sessions. */
static const struct {
	const char *bytes, *blocks;
	double size;
	uint64_t count;
} heaps[] = {
	{ "bytes of 7 blocks of 0.7 R", "7 blocks of 0.7 R", 0.7, 7 },
	{ "bytes of 8 blocks of 1.2 R", "8 blocks of 1.2 R", 1.2, 8 },
	{ "bytes of 30 blocks of 2.3 R", "30 blocks of 2.3 R", 2.3, 30 },
	{ "bytes of 10 blocks of 5 R", "10 blocks of 5 R", 5, 10 },
	{ "bytes of 40 blocks of 6 R", "40 blocks of 6 R", 6, 40 },
	{ "bytes of 300 blocks of 8 R", "300 blocks of 8 R", 8, 300 },
	{ "bytes of 2200 blocks of 10 R", "2200 blocks of 10 R", 10, 2200 },
};

/* Stacks of so many R at least in blocks of 256 bytes, spread over so many decades, of which one was freed each: what
 * those without a live sample hold, where there are any. */
static void state_unseen(unsigned stacks, double least, double decades, const char *name, struct random_source *random)
{
	struct dump_builder b;
	struct report r;
	double truth = 0;

	session_begin(&b, FIGURE_RATE, 16384, 64);
	for (unsigned i = 0; i < stacks; i++) {
		uint32_t stack = session_stack(&b, i);
		uint64_t before = b.live_used;
		double size = least * pow(10, decades * random_unit(random));
		uint64_t blocks = (uint64_t)ceil(FIGURE_RATE / 256.0 * size);
		sample(&b, stack, 256, FIGURE_RATE, 1, 2);
		session_blocks(&b, random, stack, 256, blocks, FIGURE_RATE);
		truth += b.live_used == before ? 256.0 * (double)blocks : 0;
	}
	session_report(&r, &b, 1, (struct report_options){ 0 });
	if (truth > 0)
		count_statement(name, HOLDS, 0, truth < unseen_stacks(&r, true).high);
	report_done(&r);
	dump_builder_done(&b);
}

/* What is live, what was freed and not given back, and what nobody saw, in MiB; blocks of that size. */
static const struct memory {
	const char *name;
	double live, freed, unseen;
	uint64_t size;
} memories[] = {
	{ "64 MiB live, all seen: the kernel's line says so", 64, 0, 0, 1000 },
	{ "32 MiB of 24 bytes live, all seen: the kernel's line says so", 32, 0, 0, 24 },
	{ "64 MiB freed, not given back: the kernel's line says so", 0, 64, 0, 1000 },
	{ "32 MiB live, 13 unseen: the kernel's line does not deny them", 32, 0, 13, 1000 },
	{ "64 MiB live, 20 unseen: the kernel's line does not deny them", 64, 0, 20, 1000 },
	{ "1 MiB live, 5 unseen: the kernel's line does not deny them", 1, 0, 5, 1000 },
	{ "nothing live, 4 MiB unseen: the kernel's line does not deny them", 0, 0, 4, 1000 },
};

/* Chunks of glibc hold the block and 8 bytes, in steps of 16. */
static void state_memory(const struct memory *m, struct random_source *random)
{
	const double mib = 1 << 20, chunk = (double)((m->size + 8 + 15) / 16 * 16);
	struct dump_builder b;
	struct report r;

	session_begin(&b, MEMORY_RATE, 16384, 64);
	uint32_t stack = session_stack(&b, 0);
	session_blocks(&b, random, stack, m->size, (uint64_t)(m->live * mib / (double)m->size), MEMORY_RATE);
	for (uint64_t k = 0; k < b.live_used; k++)
		live_record(&b, k)->usable = (uint64_t)chunk - 8;
	double p = estimate_probability(m->size, MEMORY_RATE), blocks = m->freed * mib / (double)m->size;
	for (double at = 0; (at -= log(random_unit(random)) / p) < blocks;)
		sample(&b, stack, m->size, MEMORY_RATE, 1, 2);
	double grown = (m->live + m->freed) * mib / (double)m->size * chunk + m->unseen * mib;
	dump_builder_header(&b)->private_start_bytes = 100 << 20;
	dump_builder_header(&b)->private_latest_bytes = (uint64_t)(100 * mib + grown);
	session_report(&r, &b, 1, (struct report_options){ 0 });
	enum report_kernel said = r.memory.verdict;
	if (m->unseen > 0)
		count_statement(m->name, HOLDS, 0,
		                said == KERNEL_CANNOT_TELL || said == KERNEL_MORE || said == KERNEL_FREED ||
		                        (said == KERNEL_AGREES && m->unseen * mib <= r.memory.not_live));
	else
		count_statement(m->name, HOLDS, 0,
		                !r.memory.mostly_unseen && said == (m->freed > 0 ? KERNEL_FREED : KERNEL_AGREES));
	report_done(&r);
	dump_builder_done(&b);
}

void state_figures(unsigned runs, struct random_source *random)
{
	struct dump_builder b;
	struct report r;

	for (unsigned run = 0; run < runs; run++) {
		for (size_t i = 0; i < sizeof memories / sizeof memories[0]; i++)
			state_memory(&memories[i], random);
		state_unseen(30, 0.01, 4, "30 stacks: those without a sample hold less than said", random);
		state_unseen(200, 0.01, 4, "200 stacks: those without a sample hold less than said", random);
		state_unseen(20, 3.1, 0, "20 stacks of 3.1 R: those without a sample hold less than said", random);
		state_unseen(1, 3.1, 0, "a stack of 3.1 R: without a sample it holds less than said", random);
		for (size_t i = 0; i < sizeof heaps / sizeof heaps[0]; i++) {
			uint64_t size = (uint64_t)(heaps[i].size * FIGURE_RATE);
			session_begin(&b, FIGURE_RATE, 4096, 1);
			session_blocks(&b, random, session_stack(&b, 0), size, heaps[i].count, FIGURE_RATE);
			session_report(&r, &b, 1, (struct report_options){ 0 });
			holds(heaps[i].bytes, report_estimate(&r, &r.total, FIGURE_LIVE_BYTES),
			      (double)(size * heaps[i].count));
			holds(heaps[i].blocks, report_estimate(&r, &r.total, FIGURE_LIVE_COUNT),
			      (double)heaps[i].count);
			report_done(&r);
			dump_builder_done(&b);
		}
	}
}
