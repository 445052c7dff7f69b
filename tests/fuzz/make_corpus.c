/* SPDX-License-Identifier: MIT */
/* Writes the seeds of the fuzz targets into two directories, so that they need not be kept: small dumps of every shape,
 * files of symbols. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "census_sample.h"
#include "dump_builder.h"
#include "symbols/symbol_section.h"

static void save(struct dump_builder *b, const char *directory, const char *name)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/%s", directory, name);
	if (dump_builder_write(b, path)) {
		perror(path);
		exit(1);
	}
}

/* Times are seconds after the start; three stamps are a nanosecond (dump_builder_init). */
static void put_life(struct dump_builder *b, uint32_t stack, uint64_t size, double born, double freed)
{
	struct dump_header *h = dump_builder_header(b);
	uint64_t k = b->live_used;

	dump_builder_sample(b, stack, size, 65536, freed == 0);
	if (freed != 0) {
		struct dump_history_block *block =
			dump_builder_at(b, dump_builder_region(b, DUMP_REGION_HISTORY)->offset);
		struct dump_history_record *record = &block->records[block->used - 1];
		record->allocated_stamp = h->clock_start.stamp + (uint64_t)(born * 3e9);
		record->freed_stamp = h->clock_start.stamp + (uint64_t)(freed * 3e9);
		return;
	}
	struct dump_live_record *record = dump_builder_live(b, k);
	record->stamp = h->clock_start.stamp + (uint64_t)(born * 3e9);
	record->flags = k % 5 ? 0 : DUMP_LIVE_PART;
	record->usable = k % 5 ? size + 24 : size;
}

/* A session with all that may happen: several rates, thinning, losses, a limit for the cost, memory that went past,
 * blocks of all ages. */
static void make_eventful(struct dump_builder *b)
{
	const uint64_t leak[] = { DUMP_FRAME(1, 0x400123), DUMP_FRAME(1, 0x400456) };
	const uint64_t churn[] = { DUMP_FRAME(1, 0x400789) };
	static const struct dump_rate_change changes[] = {
		{ .reason = DUMP_RATE_COSTLY,
		  .stamp = 3000000000,
		  .old_bytes = 16384,
		  .new_bytes = 65536,
		  .overhead_ppm = 23456 },
		{ .reason = DUMP_RATE_CHEAP,
		  .stamp = 12000000000,
		  .old_bytes = 65536,
		  .new_bytes = 32768,
		  .overhead_ppm = 1234 },
		{ .reason = DUMP_RATE_FULL,
		  .stamp = 27000000000,
		  .old_bytes = 32768,
		  .new_bytes = 65536,
		  .thinned_bytes = 40960 },
	};

	dump_builder_init(b, 65536, 256, 8, 2);
	struct dump_header *h = dump_builder_header(b);
	uint32_t s = dump_builder_stack(b, leak, 2, 0);
	uint32_t t = dump_builder_stack(b, churn, 1, DUMP_STACK_DEEP);
	h->unknown_stack = dump_builder_stack(b, NULL, 0, 0);
	for (int i = 0; i < 40; i++) {
		put_life(b, s, 1000 + 10 * (uint64_t)i, 0.1 + 0.7 * i, 0);
		put_life(b, t, 300 + 100 * (uint64_t)i, 0.2 + 0.7 * i, i % 8 ? 0.3 + 0.7 * i : 0);
	}
	put_life(b, h->unknown_stack, 77, 3, 0);
	dump_builder_module(b, 1, 0, 0x400000, 0x500000, "/opt/eventful", NULL, 0, DUMP_MODULE_MAIN);
	dump_builder_note(b, DUMP_NOTE_NOT_PATCHED, "libodd.so is bound otherwise");
	h->first_rate_bytes = 16384;
	for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
		struct dump_rate_change c = changes[i];
		c.stamp += h->clock_start.stamp;
		dump_builder_rate(b, &c);
	}
	h->thinnings = 1;
	h->max_overhead_ppm = 10000;
	h->cpu_ns = 12345678901;
	h->cost_ns = 98765432;
	h->private_start_bytes = 10 << 20;
	h->private_latest_bytes = 777 << 20;
	h->shared_end_bytes = 600 << 20;
	h->files_start_bytes = 8 << 20;
	h->files_end_bytes = 20 << 20;
	h->counters[1][DUMP_COUNTER_lost_busy] = 5;
	h->counters[2][DUMP_COUNTER_lost_live_full] = 3;
	h->counters[2][DUMP_COUNTER_lost_stack_full] = 1;
	h->counters[0][DUMP_COUNTER_lost_history] = 2;
	h->counters[0][DUMP_COUNTER_frees_missed] = 4;
	h->counters[0][DUMP_COUNTER_stacks_deep] = 40;
	h->counters[0][DUMP_COUNTER_samples_thinned] = 11;
	const uint64_t start = h->clock_start.stamp;
	for (uint64_t i = 1; i < 25; i++) {
		struct dump_usage *usage =
			dump_builder_usage(b, start + i * 3000000000, i % 3 ? 0 : DUMP_USAGE_LOOK, (50 + i) << 20);
		usage->parts[DUMP_MEMORY_LIVE] = 30 << 20;
		usage->parts[DUMP_MEMORY_FREED] = i << 20;
		usage->parts[DUMP_MEMORY_FILES] = 20 << 20;
	}
}

/* The same with all that its memory may have been. */
static void make_resident(struct dump_builder *b)
{
	make_eventful(b);
	for (uint16_t moment = DUMP_MEMORY_START; moment <= DUMP_MEMORY_END; moment++) {
		for (uint16_t kind = 1; kind < DUMP_MEMORY_KINDS; kind++)
			dump_builder_memory(b, moment, kind, (uint64_t)kind * moment << 22,
			                    kind % 3 ? "" : "/memfd:x\033[1m");
		dump_builder_memory(b, moment, DUMP_MEMORY_SHARED, (uint64_t)moment << 28, "/dev/shm/cache");
		dump_builder_look(b, moment, (uint64_t)moment << 29, DUMP_LOOK_MALLOC, "jemalloc");
	}
	dump_builder_block_name(b, DUMP_BLOCK_TYPE, DUMP_TYPE_VTABLE, 1, "shop::Book");
	dump_builder_block_name(b, DUMP_BLOCK_TYPE, DUMP_TYPE_PYTHON, 2, "dict\033[1m");
	dump_builder_block_name(b, DUMP_BLOCK_HOLDER, DUMP_TYPE_NONE, 1, "shop::orders (server)");
	for (uint64_t i = 0; i < 24; i++)
		dump_builder_block(b, dump_builder_live(b, i)->address, 1 + (uint32_t)i % 3, (uint32_t)i % 2);
	dump_builder_block_look(b, DUMP_BLOCK_TYPES_CUT | DUMP_BLOCK_HOLDERS, "it took too long");
}

static void make_names(const char *directory)
{
	static const char *const names[] = { "_ZN3app5CacheIiE3putEi",
		                             "_RNvC6_123foo3bar",
		                             "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
		                             "_Z1f1A1BIS_S_ES0_IS1_S1_ES0_IS2_S2_ES0_IS3_S3_E",
		                             "operator<< <std::char_traits<char> >(a<b<c> >)",
		                             "\033[31m\xc2\x9b\xe2\x80\xae\xff\xf0\x9f\x98\x80" };
	char path[4096];

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		snprintf(path, sizeof path, "%s/%zu", directory, i);
		FILE *out = fopen(path, "wb");
		if (!out || fwrite(names[i], 1, strlen(names[i]), out) != strlen(names[i]) || fclose(out)) {
			perror(path);
			exit(1);
		}
	}
}

/* The sampler with names for its frames. */
static void make_named(struct dump_builder *b)
{
	static const struct location locations[] = { { "inner(int)", "inner.h", 12, true },
		                                     { "outer\033[1m", "outer.c", 34, false } };
	static const uint64_t frames[] = { DUMP_FRAME(2, 0x7f1000000234), DUMP_FRAME(1, 0x555500001234),
		                           DUMP_FRAME(1, 0x555500002345), DUMP_FRAME(1, 0x555500004321),
		                           DUMP_FRAME(0, 0x123456789a) };
	const struct dump_symbol_module program = { .id = 1, .source = DUMP_SYMBOL_SOURCE_FILE };
	const struct dump_symbol_module library = { .id = 2, .flags = DUMP_SYMBOL_INCOMPLETE };
	struct symbol_section section;

	symbol_section_init(&section, 1 << 20);
	for (unsigned i = 0; i < sizeof frames / sizeof frames[0]; i++)
		symbol_section_place(&section, frames[i], i == 0, &locations[i % 2], 2 - i % 2);
	symbol_section_module(&section, &program, NULL);
	symbol_section_module(&section, &library, "names may be missing");
	struct dump_symbols *symbols = symbol_section_build(&section);
	if (!symbols)
		abort();
	dump_builder_sampler(b);
	dump_builder_symbols(b, symbols, symbols->bytes);
	free(symbols);
	symbol_section_done(&section);
}

static void make_census(const char *directory)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/sample", directory);
	FILE *f = fopen(path, "we");
	if (!f || fwrite(&census_sample, sizeof census_sample, 1, f) != 1 || fclose(f))
		abort();
}

int main(int argc, char **argv)
{
	struct dump_builder b;
	const uint64_t frame = DUMP_FRAME(1, 0x400100);
	static const char *const paths[] = { "", "/srv//./x/../app/", "../lib", "/", "/usr/lib/python3\033[1m" };

	if (argc != 4)
		return 64;
	make_names(argv[2]);
	make_census(argv[3]);
	dump_builder_sampler(&b);
	save(&b, argv[1], "sampler");
	dump_builder_header(&b)->state = DUMP_STATE_RUNNING;
	dump_builder_header(&b)->lease_realtime_ns = 1;
	dump_builder_header(&b)->lease_sequence = 3;
	save(&b, argv[1], "abandoned");
	b.size = 20000;
	save(&b, argv[1], "cut");
	dump_builder_done(&b);

	make_eventful(&b);
	save(&b, argv[1], "eventful");
	dump_builder_done(&b);

	make_resident(&b);
	save(&b, argv[1], "resident");
	dump_builder_done(&b);

	make_named(&b);
	save(&b, argv[1], "named");
	dump_builder_done(&b);

	dump_builder_snake(&b);
	save(&b, argv[1], "snake");
	for (unsigned i = 0; i < sizeof paths / sizeof paths[0]; i++)
		dump_builder_path(&b, paths[i]);
	save(&b, argv[1], "paths");
	dump_builder_done(&b);

	dump_builder_hotspot(&b);
	save(&b, argv[1], "hotspot");
	dump_builder_hotspot_63(&b);
	save(&b, argv[1], "hotspot_63");
	dump_builder_done(&b);

	dump_builder_init(&b, 1, 8, 8, 0);
	save(&b, argv[1], "empty");
	uint32_t s = dump_builder_stack(&b, &frame, 1, DUMP_STACK_DEEP);
	dump_builder_sample(&b, s, 0, 1, 1);
	dump_builder_module(&b, 1, 0, 0x400000, 0x500000, "/bin/true", NULL, 0, DUMP_MODULE_MAIN);
	dump_builder_module(&b, 65535, 0, 0x7000, 0x8000, "[vdso]", NULL, 0, DUMP_MODULE_VDSO);
	dump_builder_header(&b)->state = DUMP_STATE_EXECED;
	save(&b, argv[1], "exact");
	dump_builder_done(&b);
	return 0;
}
