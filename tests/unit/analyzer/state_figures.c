/* SPDX-License-Identifier: MIT */
/* Figures of stacks of one size of blocks, where so few of them are missed that one more or less matters. */
#include "statements.h"
#include "report/unseen.h"

#define FIGURE_RATE 65536u

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

/* Stacks of 0.01 to 100 R in blocks of 256 bytes, of which one was freed each: what those without a live sample hold.
 */
static void state_unseen(unsigned stacks, const char *name, struct random_source *random)
{
	struct dump_builder b;
	struct report r;
	double truth = 0;

	session_begin(&b, FIGURE_RATE, 16384, 16);
	for (unsigned i = 0; i < stacks; i++) {
		uint32_t stack = session_stack(&b, i);
		uint64_t before = b.live_used;
		uint64_t blocks = (uint64_t)ceil(FIGURE_RATE / 256.0 * pow(10, 4 * random_unit(random) - 2));
		sample(&b, stack, 256, FIGURE_RATE, 1, 2);
		session_blocks(&b, random, stack, 256, blocks, FIGURE_RATE);
		truth += b.live_used == before ? 256.0 * (double)blocks : 0;
	}
	session_report(&r, &b, 1, (struct report_options){ 0 });
	count_statement(name, HOLDS, 0, truth < unseen_stacks(&r, true).high);
	report_done(&r);
	dump_builder_done(&b);
}

void state_figures(unsigned runs, struct random_source *random)
{
	struct dump_builder b;
	struct report r;

	for (unsigned run = 0; run < runs; run++) {
		state_unseen(30, "30 stacks: those without a sample hold less than said", random);
		state_unseen(200, "200 stacks: those without a sample hold less than said", random);
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
