/* SPDX-License-Identifier: MIT */
/*
 * fuzz_dump_mutations DIRECTORY [SEED [FIRST [COUNT]]]: structure-aware mutations (mutate_dump.h) of the dumps of a
 * directory, through the reader, the report, all of its forms, a comparison and the live view, in one process. Round
 * FIRST and those after it; a round is the same whatever was before it, so that one that fails can be done alone.
 *
 * A round that takes more than ROUND_SECONDS of a processor ends the program, and says which one it was.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>

#include "damage.h"
#include "mutate_dump.h"

#define ROUND_SECONDS 10
#define COUNT_SHORT 5000

struct seed {
	char name[256];
	unsigned char *bytes;
	size_t size;
};

struct seeds {
	struct seed *list;
	size_t count;
};

static _Noreturn void fail(const char *path)
{
	fprintf(stderr, "%s: %s\n", path, strerror(errno));
	exit(1);
}

static void read_seed(const char *directory, const char *name, struct seed *seed)
{
	char path[4096];
	struct stat st;

	snprintf(path, sizeof path, "%s/%s", directory, name);
	FILE *f = fopen(path, "re");
	if (!f || fstat(fileno(f), &st))
		fail(path);
	snprintf(seed->name, sizeof seed->name, "%s", name);
	seed->size = (size_t)st.st_size;
	seed->bytes = malloc(seed->size + 1);
	if (!seed->bytes || fread(seed->bytes, 1, seed->size, f) != seed->size)
		fail(path);
	fclose(f);
}

static int is_visible(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

/* In the order of their names, so that a round is the same everywhere. */
static void read_seeds(const char *directory, struct seeds *seeds)
{
	struct dirent **entries;
	int n = scandir(directory, &entries, is_visible, alphasort);

	if (n <= 0)
		fail(directory);
	seeds->list = calloc((size_t)n, sizeof *seeds->list);
	seeds->count = (size_t)n;
	if (!seeds->list)
		abort();
	for (int i = 0; i < n; i++) {
		read_seed(directory, entries[i]->d_name, &seeds->list[i]);
		free(entries[i]);
	}
	free(entries);
}

static void done_seeds(struct seeds *seeds)
{
	for (size_t i = 0; i < seeds->count; i++)
		free(seeds->list[i].bytes);
	free(seeds->list);
}

static unsigned long long round_now;

static void hang(int signal_number)
{
	char text[100];
	int n = snprintf(text, sizeof text, "round %llu takes more than %d s\n", round_now, ROUND_SECONDS);

	(void)signal_number;
	if (write(STDERR_FILENO, text, (size_t)n) < 0)
		_exit(3);
	abort();
}

static void limit_round(time_t seconds)
{
	const struct itimerval limit = { .it_value.tv_sec = seconds };

	if (setitimer(ITIMER_PROF, &limit, NULL))
		fail("setitimer");
}

/* One mutation of one of the dumps, in one of the views. */
static int run(const struct seeds *seeds, uint64_t seed, uint64_t number)
{
	const struct seed *s = &seeds->list[number % seeds->count];
	unsigned char *bytes = malloc(s->size + 1);

	if (!bytes)
		abort();
	memcpy(bytes, s->bytes, s->size);
	size_t size = dump_mutate(bytes, s->size, seed << 40 ^ number);
	int result = damage_report_as(bytes, size, number / seeds->count);
	free(bytes);
	return result;
}

static uint64_t argument(int argc, char **argv, int i, uint64_t otherwise)
{
	return argc > i ? strtoull(argv[i], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
	struct seeds seeds;
	uint64_t results[DAMAGE_REFUSED + 1] = { 0 };
	const uint64_t seed = argument(argc, argv, 2, 1), first = argument(argc, argv, 3, 0);
	const uint64_t count = argument(argc, argv, 4, COUNT_SHORT);
	const time_t start = time(NULL);

	if (argc < 2)
		return 64;
	read_seeds(argv[1], &seeds);
	signal(SIGPROF, hang);
	for (uint64_t i = first; i < first + count; i++) {
		round_now = i;
		limit_round(ROUND_SECONDS);
		results[run(&seeds, seed, i)]++;
		if ((i + 1) % 1000 == 0)
			fprintf(stderr, "%llu rounds, %lld s\n", round_now + 1, (long long)(time(NULL) - start));
	}
	limit_round(0);
	done_seeds(&seeds);
	printf("%llu whole, %llu in part, %llu refused\n", (unsigned long long)results[DAMAGE_NONE],
	       (unsigned long long)results[DAMAGE_PARTIAL], (unsigned long long)results[DAMAGE_REFUSED]);
	return 0;
}
