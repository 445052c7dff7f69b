/* SPDX-License-Identifier: MIT */
/*
 * Writes a large dump, to measure memanalyze with: large_dump FILE [LIVE [FREED [STACKS [PROGRAM]]]]. Log-normal sizes, stacks of 4 to
 * 30 frames that share their outer ones as those of a program do, in the text of PROGRAM (default: this program).
 */
#include <elf.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dump_builder.h"
#include "gamma.h"
#include "heap_simulation.h"

#define RATE 65536u
#define BIAS 0x555500000000u

static uint64_t power_of_two(uint64_t n)
{
	uint64_t p = 8;

	while (p < n)
		p *= 2;
	return p;
}

/* Frames in the first executable segment of a program, which is where its text is. */
static int text_of(const char *path, uint64_t *start, uint64_t *bytes)
{
	Elf64_Ehdr e;
	Elf64_Phdr p;
	FILE *f = fopen(path, "rb");
	int found = -1;

	if (!f)
		return -1;
	if (fread(&e, sizeof e, 1, f) == 1 && !memcmp(e.e_ident, ELFMAG, SELFMAG))
		for (int i = 0; i < e.e_phnum && found; i++)
			if (!fseek(f, (long)(e.e_phoff + (uint64_t)i * e.e_phentsize), SEEK_SET) && fread(&p, sizeof p, 1, f) == 1 &&
			    p.p_type == PT_LOAD && p.p_flags & PF_X) {
				*start = p.p_vaddr;
				*bytes = p.p_memsz;
				found = 0;
			}
	fclose(f);
	return found;
}

static uint32_t make_stack(struct dump_builder *b, uint64_t number, uint64_t text, uint64_t bytes)
{
	uint64_t frames[30];
	uint32_t n = 4 + (uint32_t)(number % 27);

	/* Outer frames are those of the number's leading digits: a tree with 10 branches. */
	for (uint32_t i = n; i-- > 0;) {
		struct random_source place = { (number + 1) / (uint64_t)pow(10, fmin(i, 15)) * 31 + i };
		frames[i] = DUMP_FRAME(1, BIAS + text + random_next(&place) % bytes);
	}
	frames[0] = DUMP_FRAME(1, BIAS + text + (number * 7 + 1) % bytes);
	return dump_builder_stack(b, frames, n, 0);
}

int main(int argc, char **argv)
{
	uint64_t live = argc > 2 ? strtoull(argv[2], NULL, 0) : 1000000;
	uint64_t freed = argc > 3 ? strtoull(argv[3], NULL, 0) : 10000000;
	uint64_t stacks = argc > 4 ? strtoull(argv[4], NULL, 0) : 100000;
	char program[PATH_MAX];
	uint64_t text, bytes;
	struct random_source random = { 1 };
	struct dump_builder b;

	if (argc < 2 || !stacks || !realpath(argc > 5 ? argv[5] : argv[0], program) || text_of(program, &text, &bytes)) {
		fprintf(stderr, "usage: large_dump FILE [LIVE [FREED [STACKS [PROGRAM]]]]\n");
		return 64;
	}
	dump_builder_init(&b, RATE, power_of_two(live + live / 4), power_of_two(stacks), freed / DUMP_HISTORY_RECORDS + 1);
	dump_builder_module(&b, 1, BIAS, BIAS, BIAS + 0x10000000, program, NULL, 0, DUMP_MODULE_MAIN);
	uint32_t *references = calloc(stacks, sizeof *references);
	if (!references)
		return 1;
	for (uint64_t i = 0; i < stacks; i++)
		references[i] = make_stack(&b, i, text, bytes);
	for (uint64_t i = 0; i < live + freed; i++) {
		/* The square favours some stacks, each has one. */
		double u = random_unit(&random);
		uint64_t s = i < stacks ? i : (uint64_t)(u * u * (double)stacks);
		uint64_t size = (uint64_t)(200 * exp(1.5 * normal_quantile(random_unit(&random))));
		dump_builder_sample(&b, references[s], size, RATE, i % (live + freed) * live / (live + freed) !=
				    (i + 1) * live / (live + freed));
	}
	free(references);
	int r = dump_builder_write(&b, argv[1]);
	dump_builder_done(&b);
	if (r)
		fprintf(stderr, "large_dump: %s: cannot write\n", argv[1]);
	return r ? 1 : 0;
}
