/* SPDX-License-Identifier: MIT */
/*
 * Maps files and anonymous memory in amounts that it knows: whole, in parts, one over the other, resized, of devices
 * and memfds, in a thread and in a child; both kinds from the same functions. After the line "go" on stdin it does so,
 * and prints of each function what of either kind is left (TRUTH); it checks the contents at the line "end". With an
 * argument it maps and unmaps a page all the time instead.
 */
#include "victim.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096u
#define FILE_BYTES (64 * PAGE)
#define KEPT 60u
#define QUICK 1000u
#define SHREDDED 75u
#define SHREDS 64u
#define TRUTHS 12u
#define CHURN 2000000u

struct amount {
	unsigned long long bytes, count;
};

/* What of a function is left: of memory, of files. A mapping counts as long as a part of it is there. */
struct truth {
	const char *function;
	struct amount kinds[2];
};

static struct truth truths[TRUTHS];
static int file;
static unsigned char *before[2];  /* mapped before the session: memory, a file */
static unsigned char *kept[KEPT]; /* each begins with page 1 of the file, which ends it in whole pages */

static struct amount *amount_of(const char *function, bool is_file)
{
	struct truth *t = truths;

	while (t->function && strcmp(t->function, function) != 0)
		t++;
	t->function = function;
	return &t->kinds[is_file];
}

static void add(const char *function, bool is_file, size_t bytes)
{
	struct amount *a = amount_of(function, is_file);

	a->bytes += bytes;
	a->count++;
}

/* Another part of what has been added. */
static void add_part(const char *function, bool is_file, size_t bytes)
{
	amount_of(function, is_file)->bytes += bytes;
}

static inline __attribute__((always_inline)) unsigned char *map_at(void *at, size_t bytes, bool is_file, int flags)
{
	unsigned char *place = mmap(at, bytes, PROT_READ | PROT_WRITE,
	                            MAP_PRIVATE | flags | (is_file ? 0 : MAP_ANONYMOUS), is_file ? file : -1,
	                            is_file ? PAGE : 0);

	if (place == MAP_FAILED)
		victim_wrong("mmap: %s", strerror(errno));
	return place;
}

static VICTIM_FRAME void whole(unsigned i, bool is_file)
{
	size_t bytes = (i % 7 + 1) * PAGE + i; /* not whole pages: what was asked for counts */
	unsigned char *place = map_at(NULL, bytes, is_file, 0);

	add(__func__, is_file, bytes);
	if (is_file)
		kept[i] = place;
}

static VICTIM_FRAME void dropped(bool is_file)
{
	unsigned char *place = map_at(NULL, 20 * PAGE, is_file, 0);

	munmap(place, 20 * PAGE);
}

/* The first two pages go, the last three and some, and four in the middle. */
static VICTIM_FRAME void parts(bool is_file)
{
	unsigned char *place = map_at(NULL, 16 * PAGE, is_file, 0);

	munmap(place, 2 * PAGE);
	munmap(place + 13 * PAGE, 3 * PAGE - 17);
	munmap(place + 5 * PAGE, 4 * PAGE);
	add(__func__, is_file, 3 * PAGE);
	add_part(__func__, is_file, 4 * PAGE);
}

/* Every other page goes. */
static VICTIM_FRAME void shredded(bool is_file)
{
	unsigned char *place = map_at(NULL, SHREDS * PAGE, is_file, 0);

	for (unsigned i = 1; i < SHREDS; i += 2)
		munmap(place + i * PAGE, PAGE);
	add(__func__, is_file, SHREDS / 2 * PAGE);
}

static VICTIM_FRAME void resized(bool is_file)
{
	unsigned char *place = map_at(NULL, 4 * PAGE, is_file, 0);

	place = mremap(place, 4 * PAGE, 9 * PAGE, MREMAP_MAYMOVE);
	if (place == MAP_FAILED)
		victim_wrong("mremap: %s", strerror(errno));
	place = mremap(place, 9 * PAGE, 6 * PAGE, 0);
	if (place == MAP_FAILED || mremap(place, 6 * PAGE, 1ul << 46, 0) != MAP_FAILED)
		victim_wrong("mremap");
	add(__func__, is_file, 6 * PAGE);
}

/* Parts, and what is not there, cannot be moved or grow so far; MREMAP_FIXED may have unmapped its destination then. */
static VICTIM_FRAME void refused(bool is_file)
{
	unsigned char *place = map_at(NULL, 16 * PAGE, is_file, 0), *target = map_at(NULL, 4 * PAGE, is_file, 0),
		      there[4];

	if (mremap(place + 4 * PAGE, 4 * PAGE, 1ul << 46, MREMAP_MAYMOVE) != MAP_FAILED)
		victim_wrong("mremap");
	munmap(place, PAGE);
	if (mremap(place, 4 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target) != MAP_FAILED ||
	    mremap(place, 4 * PAGE, 2 * PAGE, MREMAP_MAYMOVE) != MAP_FAILED)
		victim_wrong("mremap");
	add(__func__, is_file, 15 * PAGE);
	if (mincore(target, 2 * PAGE, there) == 0)
		add(__func__, is_file, 4 * PAGE);
	else
		add(__func__, is_file, 2 * PAGE);
}

/* What was mapped before the session is what it was. */
static VICTIM_FRAME void grown(bool is_file)
{
	if (mremap(before[is_file], 4 * PAGE, 9 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED)
		victim_wrong("mremap: %s", strerror(errno));
	add(__func__, is_file, 9 * PAGE);
}

static void churn(void)
{
	for (unsigned i = 0; i < CHURN; i++)
		munmap(map_at(NULL, PAGE, i % 2, 0), PAGE);
}

/* The other kind lies over five of eight pages. */
static VICTIM_FRAME void replaced(bool is_file)
{
	unsigned char *place = map_at(NULL, 8 * PAGE, !is_file, 0);

	map_at(place + PAGE, 5 * PAGE, is_file, MAP_FIXED);
	add(__func__, is_file, 5 * PAGE);
	add(__func__, !is_file, PAGE);
	add_part(__func__, !is_file, 2 * PAGE);
}

/* All that has a descriptor is a file; and nothing comes of what is refused. */
static VICTIM_FRAME void devices(void)
{
	int zero = open("/dev/zero", O_RDWR | O_CLOEXEC), memory = memfd_create("known_maps", MFD_CLOEXEC);

	if (zero < 0 || memory < 0 || ftruncate(memory, FILE_BYTES) != 0 ||
	    mmap(NULL, 3 * PAGE, PROT_READ, MAP_PRIVATE, zero, 0) == MAP_FAILED ||
	    mmap(NULL, 5 * PAGE, PROT_READ, MAP_SHARED, memory, 0) == MAP_FAILED ||
	    mmap(NULL, 7 * PAGE, PROT_READ, MAP_SHARED, -1, 0) != MAP_FAILED ||
	    mmap(NULL, 7 * PAGE, PROT_READ, MAP_SHARED, memory, 1) != MAP_FAILED || munmap((void *)1, PAGE) == 0)
		victim_wrong("devices");
	close(zero);
	close(memory);
	add(__func__, true, 3 * PAGE);
	add(__func__, true, 5 * PAGE);
}

static VICTIM_FRAME void quick(void)
{
	for (unsigned i = 0; i < QUICK; i++) {
		unsigned char *place = map_at(NULL, (i % 30 + 1) * PAGE, true, 0);

		if (i % 10)
			munmap(place, (i % 30 + 1) * PAGE);
		else
			add(__func__, true, (i % 30 + 1) * PAGE);
	}
}

static void *run_quick(void *unused)
{
	quick();
	return unused;
}

static void map_in_child(void)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		for (unsigned i = 0; i < KEPT; i++)
			whole(i, true);
		munmap(kept[0], PAGE);
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		victim_wrong("child");
}

static void work(void)
{
	pthread_t thread;

	for (unsigned i = 0; i < KEPT; i++)
		for (unsigned is_file = 0; is_file < 2; is_file++) {
			whole(i, is_file);
			dropped(is_file);
			parts(is_file);
			resized(is_file);
			replaced(is_file);
			refused(is_file);
		}
	for (unsigned is_file = 0; is_file < 2; is_file++)
		grown(is_file);
	for (unsigned i = 0; i < 2 * SHREDDED; i++)
		shredded(i % 2);
	devices();
	if (pthread_create(&thread, NULL, run_quick, NULL) || pthread_join(thread, NULL))
		victim_wrong("thread");
	map_in_child();
}

static void tell(void)
{
	for (const struct truth *t = truths; t->function; t++)
		victim_say("TRUTH {\"function\":\"%s\",\"memory\":{\"live_bytes\":%llu,\"live_count\":%llu},"
		           "\"files\":{\"live_bytes\":%llu,\"live_count\":%llu}}",
		           t->function, t->kinds[0].bytes, t->kinds[0].count, t->kinds[1].bytes, t->kinds[1].count);
	victim_say("TRUTH-END");
}

static void make_file(void)
{
	unsigned char page[PAGE];
	char name[] = "/tmp/known_maps.XXXXXX";

	file = mkostemp(name, O_CLOEXEC);
	unlink(name);
	for (unsigned i = 0; i < FILE_BYTES / PAGE; i++) {
		memset(page, (int)i, sizeof page);
		if (write(file, page, sizeof page) != sizeof page)
			victim_wrong("no file");
	}
}

static void check(void)
{
	for (unsigned i = 0; i < KEPT; i++)
		for (unsigned page = 0; kept[i] && page <= i % 7; page++)
			if (kept[i][page * PAGE + i] != page + 1)
				victim_wrong("mapping %u, page %u", i, page);
	victim_round();
}

int main(int argc, char **argv)
{
	(void)argv;
	char line[32];

	victim_start("known_maps");
	make_file();
	for (unsigned is_file = 0; is_file < 2; is_file++)
		before[is_file] = map_at(NULL, 4 * PAGE, is_file, 0);
	victim_ready();
	while (victim_line(line, sizeof line) && strcmp(line, "end")) {
		if (strcmp(line, "go"))
			continue;
		if (argc > 1)
			churn();
		else
			work();
		tell();
	}
	check();
	return victim_report();
}
