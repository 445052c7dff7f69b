/* SPDX-License-Identifier: MIT */
/*
 * Several payloads beside each other in one process: each has a session of its own, with the rules that memattach
 * compiles, and a live set of its own. The workload churn goes on with one of them or with none, in turns of random
 * order. What a change of the payload brings is the difference of two lines, in CPU time, so it can be asked on a
 * machine in use. The same payload twice (a copy: the loader knows files by inode) shows the noise.
 *
 *     ninja recorders && taskset -c 1 recorders RATE [-l live] [-s stacks] [-r rounds] [-n operations of a slice]
 * PAYLOAD.so ...
 */
#include <stdlib.h>

/* The workload calls through these. */
static void *(*volatile allocate)(size_t) = malloc;
static void (*volatile release)(void *) = free;

#define main churn_main
#define malloc(bytes) allocate(bytes)
#define free(block) release(block)
#include "churn.c"
#undef main
#undef malloc
#undef free

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "control.h"
#include "fixture.h"
#include "hooks.h"
#include "elf/modules.h"
#include "unwind/table_writer.h"

#define RECORDERS_MAX 8
#define LEVELS 3u         /* of the tables, as memattach begins with */
#define LIVE_DENSE 65536u /* entries of the first level where all is recorded */
#define LIVE_SPARSE 2048u
#define INDEX_DENSE 16384u /* of the index of stacks */
#define INDEX_SPARSE 2048u

struct recorder {
	const char *name;
	int64_t (*control)(uint64_t op, void *argument);
	struct memattach_session *session;
	struct fixture f;
	void *(*allocate)(size_t);
	void (*release)(void *);
	void **blocks;
	uint64_t cycles, samples; /* counted before the measurement */
	double *ns;
};

static struct recorder recorders[RECORDERS_MAX + 1]; /* the first is none */
static unsigned recorder_count = 1;
static int rounds = 40;
static uint64_t slice = 100000, dice = 88172645463325252ull;
static double *column;

static void die(const char *what)
{
	fprintf(stderr, "recorders: %s\n", what);
	exit(1);
}

static void load(struct recorder *r, const char *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		die(dlerror());
	r->name = path;
	*(void **)&r->control = dlsym(handle, "memattach_control");
	r->session = dlsym(handle, "memattach_session");
}

static void make_tables(struct unwind_tables *t)
{
	struct unwind_coverage *coverage;
	struct target_memory tm;
	struct modules modules;
	uint32_t next_id = 1;
	struct maps maps;
	struct err e;

	if (target_memory_open(&tm, getpid(), &e) || maps_read(&maps, "/proc/self/maps", &e) ||
	    modules_read(&modules, &tm, &maps, &e))
		die(e.text);
	modules_number(&modules, NULL, &next_id);
	coverage = calloc(modules.count, sizeof(*coverage));
	if (unwind_tables_create(t, UNWIND_TABLES_MAX_BYTES, &e) ||
	    unwind_tables_update(t, &modules, &tm, &maps, coverage, &e))
		die(e.text);
	free(coverage);
}

static void begin(struct recorder *r, const struct unwind_tables *t, uint64_t rate_bytes)
{
	struct control_trampoline trampolines[] = {
		{ .original = (uint64_t)malloc, .hook = HOOK_malloc },
		{ .original = (uint64_t)free, .hook = HOOK_free },
	};
	uint64_t entries = rate_bytes == 1 ? LIVE_DENSE : LIVE_SPARSE;
	uint64_t index = rate_bytes == 1 ? INDEX_DENSE : INDEX_SPARSE;
	struct control_patch patch = { .trampoline_count = 2, .trampolines = (uint64_t)trampolines };

	fixture_open(&r->f, rate_bytes, r->name);
	for (uint64_t i = 0; i < LEVELS; i++)
		fixture_region(&r->f, DUMP_REGION_LIVE, DUMP_LIVE_BYTES(entries << i), entries << i);
	for (uint64_t i = 0; i < LEVELS; i++)
		fixture_region(&r->f, DUMP_REGION_STACK_INDEX, (index << i) * DUMP_INDEX_ENTRY_BYTES, index << i);
	fixture_region(&r->f, DUMP_REGION_STACKS, 8 << 20, 0);
	fixture_region(&r->f, DUMP_REGION_HISTORY, 2048 * 4096, 2048);
	r->f.start.tables_fd = t->fd;
	r->f.start.tables_max_bytes = t->max_bytes;
	r->f.start.usable_size = (uint64_t)dlsym(RTLD_DEFAULT, "malloc_usable_size");
	if (r->control(CONTROL_START, &r->f.start) || r->control(CONTROL_PATCH, &patch))
		die("no session");
	r->allocate = (void *(*)(size_t))trampoline_address(r->session->trampolines_address, 0, HOOK_malloc);
	r->release = (void (*)(void *))trampoline_address(r->session->trampolines_address, 1, HOOK_free);
}

/* CPU time: others may use the machine. */
static double thread_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* churn's loop, below as many frames. */
static NI int operations(ctx *c)
{
	void **blocks = c->place;
	uint64_t start;

	for (uint64_t i = 0; i < slice + slice / 4; i++) {
		uint64_t x = xs64(&dice);
		void **block = &blocks[((x >> 32) * live) >> 32];

		if (i == slice / 4)
			c->seed = (uint64_t)(thread_s() * 1e9);
		release(*block);
		*block = v1(sizes[x & 4095], (unsigned)(x >> 12) & smask);
	}
	start = c->seed;
	c->seed = (uint64_t)(thread_s() * 1e9) - start;
	return 1;
}

/* clang-format off */
#define DEEPER(N, X) static NI int N(ctx *c) { int r = X(c); __asm__ volatile("" : : : "memory"); return r + 1; }
DEEPER(g1, operations) DEEPER(g2, g1) DEEPER(g3, g2) DEEPER(g4, g3) DEEPER(g5, g4) DEEPER(g6, g5) DEEPER(g7, g6)
DEEPER(g8, g7) DEEPER(g9, g8) DEEPER(g10, g9) DEEPER(g11, g10) DEEPER(g12, g11) DEEPER(g13, g12) DEEPER(g14, g13)
DEEPER(g15, g14) DEEPER(g16, g15) DEEPER(g17, g16) DEEPER(g18, g17) DEEPER(g19, g18) DEEPER(g20, g19) DEEPER(g21, g20)
DEEPER(g22, g21) DEEPER(g23, g22)
	/* clang-format on */

	static void one_slice(struct recorder *r, int round)
{
	ctx c = { .place = r->blocks };

	allocate = r->allocate;
	release = r->release;
	g23(&c);
	allocate = malloc;
	release = free;
	r->ns[round] = (double)c.seed / (double)slice;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile(double *values, int count, double q)
{
	qsort(values, (size_t)count, sizeof(*values), compare);
	return values[(int)(count * q)];
}

static void report(const struct recorder *r)
{
	double added, low, high, median;
	uint64_t samples = r == recorders ? 0 : fixture_counter(&r->f, DUMP_COUNTER_samples_taken) - r->samples;
	uint64_t cycles = r == recorders ? 0 : fixture_counter(&r->f, DUMP_COUNTER_slow_cycles) - r->cycles;

	for (int i = 0; i < rounds; i++)
		column[i] = r->ns[i] - recorders[0].ns[i];
	added = quantile(column, rounds, 0.5), low = quantile(column, rounds, 0.25),
	high = quantile(column, rounds, 0.75);
	for (int i = 0; i < rounds; i++)
		column[i] = r->ns[i];
	median = quantile(column, rounds, 0.5);
	printf("%-36s %8.1f ns, added %7.1f (quartiles %.1f, %.1f)", r->name, median, added, low, high);
	if (samples)
		printf(", %.0f cycles for each of %lu samples, %.1f frames", (double)cycles / (double)samples, samples,
		       (double)fixture_counter(&r->f, DUMP_COUNTER_frames_walked) /
		               (double)fixture_counter(&r->f, DUMP_COUNTER_samples_taken));
	for (int i = 0; i < rounds; i++)
		column[i] = r->ns[i] - recorders[1].ns[i];
	printf(", beside the first %+.1f\n", quantile(column, rounds, 0.5));
}

static void measure(void)
{
	for (unsigned i = 0; i < recorder_count; i++) {
		struct recorder *r = &recorders[i];

		r->ns = calloc((size_t)rounds, sizeof(*r->ns));
		r->blocks = calloc(live, sizeof(*r->blocks));
		allocate = r->allocate;
		for (size_t k = 0; k < live; k++) {
			uint64_t x = xs64(&dice);

			r->blocks[k] = v1(sizes[x & 4095], (unsigned)(x >> 20) & smask);
		}
		allocate = malloc;
		one_slice(r, 0);
		if (i) {
			r->samples = fixture_counter(&r->f, DUMP_COUNTER_samples_taken);
			r->cycles = fixture_counter(&r->f, DUMP_COUNTER_slow_cycles);
		}
	}
	for (int round = 0; round < rounds; round++) {
		unsigned order[RECORDERS_MAX + 1];

		for (unsigned i = 0; i < recorder_count; i++) {
			unsigned k = (unsigned)(xs64(&dice) % (i + 1));

			order[i] = order[k];
			order[k] = i;
		}
		for (unsigned i = 0; i < recorder_count; i++)
			one_slice(&recorders[order[i]], round);
	}
}

int main(int argc, char **argv)
{
	uint64_t rate_bytes = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
	struct unwind_tables tables;

	for (int i = 2; i < argc; i++) {
		if (argv[i][0] == '-' && i + 1 < argc) {
			uint64_t value = strtoull(argv[i + 1], NULL, 0);

			switch (argv[i++][1]) {
			case 'l': live = value; break;
			case 's': smask = (unsigned)value - 1; break;
			case 'r': rounds = (int)value; break;
			case 'n': slice = value; break;
			default: die("no such option");
			}
		} else if (recorder_count <= RECORDERS_MAX) {
			load(&recorders[recorder_count++], argv[i]);
		}
	}
	if (!rate_bytes || recorder_count == 1 || rounds < 1 || !live || live > 2 * LIVE_DENSE)
		die("RATE [-l live] [-s stacks] [-r rounds] [-n operations] PAYLOAD.so ...");
	for (int i = 0; i < 4096; i++)
		sizes[i] = (uint16_t)(16 * pow(32.0, (i + 0.5) / 4096));
	column = calloc((size_t)rounds, sizeof(*column));
	recorders[0] = (struct recorder){ .name = "none", .allocate = malloc, .release = free };
	make_tables(&tables);
	for (unsigned i = 1; i < recorder_count; i++)
		begin(&recorders[i], &tables, rate_bytes);
	measure();
	for (unsigned i = 0; i < recorder_count; i++)
		report(&recorders[i]);
	return 0;
}
