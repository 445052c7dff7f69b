/* SPDX-License-Identifier: MIT */
/*
 * tail_heap SEED: after the line "go" five functions get blocks whose sizes have a heavy tail (Pareto, 1.1), each third
 * of which is freed at once; then it prints TRUTH as known_heap does, and keeps the blocks until the line "end". The
 * same seed makes the same heap. It never allocates anything else.
 */
#include "victim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SITES 5
#define BLOCKS 60000
#define LEAST_BYTES 16
#define MOST_BYTES 64e6
#define TAIL 1.1

static struct {
	uint64_t live_count, live_bytes, allocated_count, allocated_bytes;
} truth[SITES];

#define SITE(n)                                                                                                        \
	static VICTIM_FRAME void *site_##n(size_t bytes)                                                               \
	{                                                                                                              \
		void *block = malloc(bytes);                                                                           \
                                                                                                                       \
		__asm__ volatile("" ::"r"(block) : "memory");                                                          \
		return block;                                                                                          \
	}
SITE(0)
SITE(1)
SITE(2)
SITE(3)
SITE(4)

static void *(*const sites[SITES])(size_t) = { site_0, site_1, site_2, site_3, site_4 };

static size_t draw(uint64_t *random)
{
	double unit = ((double)(victim_random(random) >> 11) + 0.5) * 0x1p-53;

	return (size_t)fmin(LEAST_BYTES * pow(unit, -1 / TAIL), MOST_BYTES);
}

static VICTIM_FRAME void run(uint64_t *random)
{
	for (unsigned i = 0; i < BLOCKS; i++) {
		size_t bytes = draw(random);
		unsigned site = i % SITES;
		void *block = sites[site](bytes);
		if (!block)
			victim_wrong("no memory for %zu bytes", bytes);
		truth[site].allocated_count++;
		truth[site].allocated_bytes += bytes;
		if (i % 3 == 0) {
			free(block);
			continue;
		}
		truth[site].live_count++;
		truth[site].live_bytes += bytes;
	}
	for (unsigned i = 0; i < SITES; i++)
		victim_say(
			"TRUTH {\"function\":\"site_%u\",\"live_count\":%lu,\"live_bytes\":%lu,\"allocated_count\":%lu,"
			"\"allocated_bytes\":%lu}",
			i, truth[i].live_count, truth[i].live_bytes, truth[i].allocated_count,
			truth[i].allocated_bytes);
	victim_say("TRUTH-END");
}

int main(int argc, char **argv)
{
	uint64_t random = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1) * 0x9E3779B97F4A7C15ull | 1;
	char line[32];

	victim_start("tail_heap");
	for (int i = 0; i < 10; i++)
		victim_random(&random);
	victim_ready();
	while (victim_line(line, sizeof line) && strcmp(line, "end"))
		if (!strcmp(line, "go"))
			run(&random);
	victim_round();
	return victim_report();
}
