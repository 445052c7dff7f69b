/* SPDX-License-Identifier: MIT */
/*
 * Large in one respect each; bench/scale attaches to it. Prints `PID n`, waits for a line on stdin, works, prints
 * figures as `R what number unit`, then DONE, and waits for another line. Times of the single steps show what grows
 * with the size.
 *
 *     scale live N       N live blocks, then all freed
 *     scale stacks N     N distinct stacks of ten varying frames
 *     scale threads N    N threads with pairs of malloc and free, for three seconds
 *     scale modules DIR  every library in DIR is loaded before it waits; then each allocates and frees
 *     scale mappings GB  that much address space in mappings of 256 MiB, every second one reserved without access
 */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define FRAME __attribute__((noinline, noclone))
#define STEPS 10
#define MODULES_MAX 4096
#define THREADS_MAX 4096
#define MAPPING_BYTES (256ull << 20)

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void result(const char *what, double number, const char *unit)
{
	printf("R %s %.6g %s\n", what, number, unit);
	fflush(stdout);
}

static void wait_for_line(void)
{
	char line[64];

	if (!fgets(line, sizeof line, stdin))
		exit(0);
}

static void ready(void)
{
	printf("PID %d\n", (int)getpid());
	fflush(stdout);
	wait_for_line();
}

/* ---- ten frames, each called from one of four places: 4^10 stacks ---- */

typedef void *(*frame_function)(size_t bytes, unsigned path);

static FRAME void *frame_0(size_t bytes, unsigned path)
{
	void *block = malloc(bytes);

	__asm__ volatile("" : : "r"(block), "r"(path) : "memory");
	return block;
}

/* What follows the call keeps the four apart: they would be merged into one, or become jumps. */
#define FRAME_OF(name, inner)                                                                                          \
	static FRAME void *name(size_t bytes, unsigned path)                                                           \
	{                                                                                                              \
		void *block;                                                                                           \
                                                                                                                       \
		switch (path & 3) {                                                                                    \
		case 0:                                                                                                \
			block = inner(bytes, path >> 2);                                                               \
			__asm__ volatile("# 0");                                                                       \
			break;                                                                                         \
		case 1:                                                                                                \
			block = inner(bytes, path >> 2);                                                               \
			__asm__ volatile("nop # 1");                                                                   \
			break;                                                                                         \
		case 2:                                                                                                \
			block = inner(bytes, path >> 2);                                                               \
			__asm__ volatile("nop; nop # 2");                                                              \
			break;                                                                                         \
		default:                                                                                               \
			block = inner(bytes, path >> 2);                                                               \
			__asm__ volatile("nop; nop; nop # 3");                                                         \
			break;                                                                                         \
		}                                                                                                      \
		__asm__ volatile("" : : "r"(block) : "memory");                                                        \
		return block;                                                                                          \
	}
FRAME_OF(frame_1, frame_0)
FRAME_OF(frame_2, frame_1)
FRAME_OF(frame_3, frame_2)
FRAME_OF(frame_4, frame_3)
FRAME_OF(frame_5, frame_4)
FRAME_OF(frame_6, frame_5)
FRAME_OF(frame_7, frame_6)
FRAME_OF(frame_8, frame_7)
FRAME_OF(frame_9, frame_8)
FRAME_OF(frame_10, frame_9)

/* ---- the kinds ---- */

static void tenth(const char *what, uint64_t number, uint64_t count, double *since)
{
	char name[64];
	double now = now_s();

	snprintf(name, sizeof name, "%s_%llu", what, (unsigned long long)number);
	result(name, (now - *since) / (double)(count / STEPS) * 1e9, "ns");
	*since = now_s();
}

static void live(uint64_t count)
{
	void **blocks = mmap(NULL, count * sizeof *blocks, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ready();
	if (blocks == MAP_FAILED)
		exit(1);
	double since = now_s();
	for (uint64_t i = 0; i < count; i++) {
		blocks[i] = frame_5(32, (unsigned)i);
		if ((i + 1) % (count / STEPS) == 0)
			tenth("live", i + 1, count, &since);
	}
	since = now_s();
	for (uint64_t i = 0; i < count; i++)
		free(blocks[i]);
	result("freed", (now_s() - since) / (double)count * 1e9, "ns");
}

static void stacks(uint64_t count)
{
	ready();
	double since = now_s();
	for (uint64_t i = 0; i < count; i++) {
		free(frame_10(32, (unsigned)(i * 0x9E3779B1u)));
		if ((i + 1) % (count / STEPS) == 0)
			tenth("stacks", i + 1, count, &since);
	}
}

static atomic_bool stop;
static _Alignas(64) struct {
	atomic_ullong pairs;
	char line[56];
} done[THREADS_MAX];

static void *worker(void *number)
{
	uintptr_t me = (uintptr_t)number;

	while (!stop) {
		for (unsigned i = 0; i < 64; i++)
			free(frame_5(64, i));
		done[me].pairs += 64;
	}
	return NULL;
}

static void threads(uint64_t count)
{
	static pthread_t thread[THREADS_MAX];
	pthread_attr_t attributes;
	unsigned long long pairs = 0;

	if (count > THREADS_MAX)
		exit(2);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 1 << 17);
	for (uintptr_t i = 0; i < count; i++)
		if (pthread_create(&thread[i], &attributes, worker, (void *)i))
			exit(1);
	ready();
	for (uint64_t i = 0; i < count; i++)
		pairs -= done[i].pairs;
	double since = now_s();
	sleep(3);
	for (uint64_t i = 0; i < count; i++)
		pairs += done[i].pairs;
	result("pairs", (double)pairs / (now_s() - since) / 1e6, "M/s");
	stop = true;
	for (uint64_t i = 0; i < count; i++)
		pthread_join(thread[i], NULL);
}

static void modules(const char *folder)
{
	static void *(*allocate[MODULES_MAX])(size_t);
	DIR *d = opendir(folder);
	size_t count = 0;
	char path[4200];

	for (struct dirent *e = d ? readdir(d) : NULL; e && count < MODULES_MAX; e = readdir(d)) {
		snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
		void *handle = strstr(e->d_name, ".so") ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
		if (handle)
			*(void **)&allocate[count++] = dlsym(handle, "scale_allocate");
	}
	if (d)
		closedir(d);
	result("modules", (double)count, "");
	ready();
	for (int round = 0; round < 1000; round++)
		for (size_t i = 0; i < count; i++)
			free(allocate[i](64));
	result("calls", (double)count * 1000, "");
}

static void mappings(uint64_t gigabytes)
{
	uint64_t count = gigabytes * 4, got = 0;

	for (uint64_t i = 0; i < count; i++) {
		int prot = i % 2 ? PROT_READ | PROT_WRITE : PROT_NONE;
		char *at = mmap(NULL, MAPPING_BYTES, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		got += at != MAP_FAILED;
		if (at != MAP_FAILED && prot != PROT_NONE)
			*at = 1;
	}
	result("mapped", (double)got / 4, "GiB");
	ready();
	for (int i = 0; i < 1000000; i++)
		free(frame_5(64, (unsigned)i));
	result("calls", 1e6, "");
}

int main(int argc, char **argv)
{
	const char *kind = argc > 2 ? argv[1] : "";
	uint64_t number = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;

	if (!strcmp(kind, "modules"))
		modules(argv[2]);
	else if (number < STEPS && strcmp(kind, "threads"))
		return 2;
	else if (!strcmp(kind, "live"))
		live(number);
	else if (!strcmp(kind, "stacks"))
		stacks(number);
	else if (!strcmp(kind, "threads"))
		threads(number);
	else if (!strcmp(kind, "mappings"))
		mappings(number);
	else
		return 2;
	printf("DONE\n");
	fflush(stdout);
	wait_for_line();
	return 0;
}
