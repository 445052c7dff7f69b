/* SPDX-License-Identifier: MIT */
/*
 * Writes a large dump, to measure memanalyze with: large_dump FILE [LIVE [FREED [STACKS [PROGRAM...]]]]. Log-normal
 * sizes, stacks of 4 to 30 frames that share their outer ones as those of a program do, in the text of the PROGRAMs and
 * libraries (default: this program), whose build-ids are recorded, so that memanalyze finds their symbols. Each stack
 * has another innermost frame, as far as there is text.
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
#include "stats/gamma.h"
#include "heap_simulation.h"

#define RATE 65536u
#define FIRST_BIAS 0x555500000000u
#define NEXT_BIAS 0x7f0000000000u
#define BIAS_STEP 0x40000000u
#define PROGRAMS_MAX 64

struct program {
	char path[PATH_MAX];
	uint64_t bias;
	uint64_t text, text_bytes; /* the first executable segment */
	unsigned char build_id[DUMP_BUILD_ID_MAX];
	uint32_t build_id_bytes;
};

struct programs {
	struct program list[PROGRAMS_MAX];
	uint32_t count;
	uint64_t text_bytes; /* of all */
};

static uint64_t power_of_two(uint64_t n)
{
	uint64_t p = 8;

	while (p < n)
		p *= 2;
	return p;
}

static uint32_t note_up(uint32_t n)
{
	return (n + 3) & ~3u;
}

/* The build-id among the notes of one segment. */
static void find_build_id(struct program *program, FILE *f, uint64_t at, uint64_t end)
{
	Elf64_Nhdr note;
	char name[4];

	while (at + sizeof note <= end && !fseek(f, (long)at, SEEK_SET) && fread(&note, sizeof note, 1, f) == 1) {
		uint64_t data = at + sizeof note + note_up(note.n_namesz);
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof name &&
		    note.n_descsz <= DUMP_BUILD_ID_MAX && fread(name, sizeof name, 1, f) == 1 &&
		    !memcmp(name, "GNU", sizeof name) && fread(program->build_id, note.n_descsz, 1, f) == 1)
			program->build_id_bytes = note.n_descsz;
		at = data + note_up(note.n_descsz);
	}
}

static int read_program(struct program *program, const char *path)
{
	Elf64_Ehdr e;
	Elf64_Phdr p;
	FILE *f = realpath(path, program->path) ? fopen(program->path, "rb") : NULL;

	if (!f)
		return -1;
	if (fread(&e, sizeof e, 1, f) != 1 || memcmp(e.e_ident, ELFMAG, SELFMAG))
		e.e_phnum = 0;
	for (int i = 0; i < e.e_phnum; i++) {
		if (fseek(f, (long)(e.e_phoff + (uint64_t)i * e.e_phentsize), SEEK_SET) ||
		    fread(&p, sizeof p, 1, f) != 1)
			break;
		if (p.p_type == PT_LOAD && p.p_flags & PF_X && !program->text_bytes) {
			program->text = p.p_vaddr;
			program->text_bytes = p.p_memsz;
		}
		if (p.p_type == PT_NOTE && !program->build_id_bytes)
			find_build_id(program, f, p.p_offset, p.p_offset + p.p_filesz);
	}
	fclose(f);
	return program->text_bytes ? 0 : -1;
}

static int read_programs(struct programs *programs, int count, char **paths)
{
	for (int i = 0; i < count && i < PROGRAMS_MAX; i++) {
		struct program *program = &programs->list[programs->count++];
		if (read_program(program, paths[i])) {
			fprintf(stderr, "large_dump: %s: not an ELF file with text\n", paths[i]);
			return -1;
		}
		program->bias = i ? NEXT_BIAS + (uint64_t)i * BIAS_STEP : FIRST_BIAS;
		programs->text_bytes += program->text_bytes;
	}
	return 0;
}

/* The frame at a place of all the text, end to end. */
static uint64_t frame_at(const struct programs *programs, uint64_t place)
{
	uint32_t i = 0;

	for (place %= programs->text_bytes; place >= programs->list[i].text_bytes; i++)
		place -= programs->list[i].text_bytes;
	return DUMP_FRAME(i + 1, programs->list[i].bias + programs->list[i].text + place);
}

static uint32_t make_stack(struct dump_builder *b, uint64_t number, const struct programs *programs)
{
	uint64_t frames[30];
	uint32_t n = 4 + (uint32_t)(number % 27);

	/* Outer frames are those of the number's leading digits: a tree with 10 branches. */
	for (uint32_t i = n; i-- > 0;) {
		struct random_source place = { (number + 1) / (uint64_t)pow(10, fmin(i, 15)) * 31 + i };
		frames[i] = frame_at(programs, exponential_random(&place));
	}
	/* A step that is prime: all over the text, never the same until it is used up. */
	frames[0] = frame_at(programs, number * 611953 + 1);
	return dump_builder_stack(b, frames, n, 0);
}

int main(int argc, char **argv)
{
	uint64_t live = argc > 2 ? strtoull(argv[2], NULL, 0) : 1000000;
	uint64_t freed = argc > 3 ? strtoull(argv[3], NULL, 0) : 10000000;
	uint64_t stacks = argc > 4 ? strtoull(argv[4], NULL, 0) : 100000;
	static struct programs programs;
	struct random_source random = { 1 };
	struct dump_builder b;

	if (argc < 2 || !stacks) {
		fprintf(stderr, "usage: large_dump FILE [LIVE [FREED [STACKS [PROGRAM...]]]]\n");
		return 64;
	}
	if (read_programs(&programs, argc > 5 ? argc - 5 : 1, argc > 5 ? argv + 5 : argv))
		return 1;
	dump_builder_init(&b, RATE, power_of_two(live + live / 4), power_of_two(stacks),
	                  freed / DUMP_HISTORY_RECORDS + 1);
	for (uint32_t i = 0; i < programs.count; i++) {
		const struct program *p = &programs.list[i];
		dump_builder_module(&b, i + 1, p->bias, p->bias, p->bias + BIAS_STEP, p->path, p->build_id,
		                    p->build_id_bytes, i ? 0 : DUMP_MODULE_MAIN);
	}
	uint32_t *references = calloc(stacks, sizeof *references);
	if (!references)
		return 1;
	for (uint64_t i = 0; i < stacks; i++)
		references[i] = make_stack(&b, i, &programs);
	for (uint64_t i = 0; i < live + freed; i++) {
		/* The square favours some stacks, each has one. */
		double u = random_unit(&random);
		uint64_t s = i < stacks ? i : (uint64_t)(u * u * (double)stacks);
		uint64_t size = (uint64_t)(200 * exp(1.5 * stats_normal_quantile(random_unit(&random))));
		dump_builder_sample(&b, references[s], size, RATE,
		                    i % (live + freed) * live / (live + freed) != (i + 1) * live / (live + freed));
	}
	free(references);
	int r = dump_builder_write(&b, argv[1]);
	dump_builder_done(&b);
	if (r)
		fprintf(stderr, "large_dump: %s: cannot write\n", argv[1]);
	return r ? 1 : 0;
}
