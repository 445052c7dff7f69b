/* SPDX-License-Identifier: MIT */
/*
 * Tears at a library that it has loaded (argument 1), as programs do that remap themselves: a line of stdin is "ACTION
 * RANGE", with a range of
 *
 *     slots     the pages of its writable segment, where its tables of functions are
 *     head      its first page: ELF header and program headers
 *     whole     all of it
 *
 *     unmap     munmap
 *     copy      a copy in anonymous memory takes its place, as when it is moved onto large pages
 *     zero      anonymous memory takes its place
 *     file      another file takes its place
 *     shared    the same, as shared memory that is only read
 *     shut      mprotect PROT_NONE; "open" undoes it
 *     away      mremap to another place; "home" undoes it
 *     truncate  the library's file is cut to nothing: pages of it raise SIGBUS from then on
 *     use       the library allocates and frees
 *     close     dlclose, then argument 2 is opened
 *     more      argument 2 is opened besides, and from then on used
 *
 * Each line is answered by DONE. Another thread allocates and checks all the time.
 */
#include "victim.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096ul
#define PAGES_MAX 64

static struct library {
	void *handle;
	const char *path;
	int (*keep)(void), (*drop)(void);
	char *start, *end, *entries_start, *entries_end;
} library;

static struct torn_page {
	char *home, *away;
	int protection;
} pages[PAGES_MAX];
static int page_count;

static void *allocate(void *argument)
{
	uint64_t random = 362436069;

	(void)argument;
	while (!victim_done()) {
		victim_block(&random);
		victim_round();
		usleep(100);
	}
	return NULL;
}

static char *page_of(uint64_t address, uint64_t more)
{
	return (char *)((address + more) & ~(PAGE - 1));
}

static int find_segments(struct dl_phdr_info *info, size_t size, void *context)
{
	struct library *l = context;

	(void)size;
	if (strcmp(info->dlpi_name, l->path) != 0)
		return 0;
	l->start = page_of(info->dlpi_addr, 0);
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD)
			continue;
		l->end = page_of(info->dlpi_addr + p->p_vaddr + p->p_memsz, PAGE - 1);
		if (p->p_flags & PF_W) {
			l->entries_start = page_of(info->dlpi_addr + p->p_vaddr, 0);
			l->entries_end = l->end;
		}
	}
	return 1;
}

static void load(const char *path)
{
	library = (struct library){ .path = path, .handle = dlopen(path, RTLD_LAZY) };
	if (!library.handle) {
		victim_wrong("dlopen: %s", dlerror());
		return;
	}
	library.keep = (int (*)(void))dlsym(library.handle, "plugin_keep");
	library.drop = (int (*)(void))dlsym(library.handle, "plugin_drop");
	if (!dl_iterate_phdr(find_segments, &library))
		victim_wrong("%s is not on the loader's list", path);
}

static void use(void)
{
	if (library.keep() || library.drop())
		victim_wrong("the library's blocks are not as it left them");
}

/* What /proc/self/maps says. */
static int protection_of(const char *page)
{
	unsigned long start, end;
	char line[512], mode[8];
	int protection = -1;
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && protection < 0 && fgets(line, sizeof line, f))
		if (sscanf(line, "%lx-%lx %7s", &start, &end, mode) == 3 && (unsigned long)page >= start &&
		    (unsigned long)page < end)
			protection = (mode[0] == 'r' ? PROT_READ : 0) | (mode[1] == 'w' ? PROT_WRITE : 0) |
			             (mode[2] == 'x' ? PROT_EXEC : 0);
	if (f)
		fclose(f);
	return protection;
}

static char *anonymous(char *at, int flags)
{
	char *place = mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (place == MAP_FAILED)
		victim_wrong("mmap: %s", strerror(errno));
	return place;
}

static void put_copy(struct torn_page *p)
{
	char *copy = anonymous(NULL, 0);

	memcpy(copy, p->home, PAGE);
	if (mprotect(copy, PAGE, p->protection) ||
	    mremap(copy, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p->home) != p->home)
		victim_wrong("a copy cannot take the place of %p: %s", p->home, strerror(errno));
}

static void put_file(struct torn_page *p, int protection, int flags)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (mmap(p->home, PAGE, protection, flags | MAP_FIXED, fd, 0) != p->home)
		victim_wrong("mmap: %s", strerror(errno));
	close(fd);
}

static void send_away(struct torn_page *p)
{
	if (mremap(p->home, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p->away) != p->away)
		victim_wrong("mremap: %s", strerror(errno));
}

static void tear(const char *action, struct torn_page *p)
{
	if (!strcmp(action, "unmap") && munmap(p->home, PAGE))
		victim_wrong("munmap: %s", strerror(errno));
	else if (!strcmp(action, "copy"))
		put_copy(p);
	else if (!strcmp(action, "zero"))
		anonymous(p->home, MAP_FIXED);
	else if (!strcmp(action, "file"))
		put_file(p, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	else if (!strcmp(action, "shared"))
		put_file(p, PROT_READ, MAP_SHARED);
	else if (!strcmp(action, "shut") && mprotect(p->home, PAGE, PROT_NONE))
		victim_wrong("mprotect: %s", strerror(errno));
	else if (!strcmp(action, "open") && mprotect(p->home, PAGE, p->protection))
		victim_wrong("mprotect: %s", strerror(errno));
	else if (!strcmp(action, "away"))
		send_away(p);
	else if (!strcmp(action, "home") &&
	         mremap(p->away, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p->home) != p->home)
		victim_wrong("mremap: %s", strerror(errno));
}

static void choose_pages(const char *range)
{
	char *start = !strcmp(range, "slots") ? library.entries_start : library.start;
	char *end = !strcmp(range, "slots") ? library.entries_end : !strcmp(range, "head") ? start + PAGE : library.end;

	page_count = 0;
	for (char *at = start; at < end && page_count < PAGES_MAX; at += PAGE) {
		int protection = protection_of(at);
		if (protection >= 0)
			pages[page_count++] = (struct torn_page){ .home = at, .protection = protection };
	}
	if (!page_count)
		victim_wrong("there is no page of %s", range);
	/* All of them before one of the pages is torn out: the kernel would give the hole. */
	for (int i = 0; i < page_count; i++)
		pages[i].away = anonymous(NULL, 0);
}

static void obey(const char *action, const char *range, const char *other)
{
	if (!strcmp(action, "use")) {
		use();
	} else if (!strcmp(action, "truncate")) {
		if (truncate(library.path, 0))
			victim_wrong("truncate: %s", strerror(errno));
	} else if (!strcmp(action, "close") || !strcmp(action, "more")) {
		if (!strcmp(action, "close") && dlclose(library.handle))
			victim_wrong("dlclose: %s", dlerror());
		load(other);
		use();
	} else {
		if (strcmp(action, "open") != 0 && strcmp(action, "home") != 0)
			choose_pages(range);
		for (int i = 0; i < page_count; i++)
			tear(action, &pages[i]);
	}
}

int main(int argc, char **argv)
{
	pthread_t thread;
	char line[64], action[32], range[32];

	victim_start("torn");
	if (argc < 3)
		return 2;
	load(argv[1]);
	if (!library.handle || pthread_create(&thread, NULL, allocate, NULL))
		return 2;
	use();
	victim_ready();
	while (victim_line(line, sizeof line) && sscanf(line, "%31s %31s", action, range) == 2) {
		obey(action, range, argv[2]);
		victim_say("DONE");
	}
	raise(SIGUSR1);
	pthread_join(thread, NULL);
	/* The loader would call the library's destructors, wherever they are by now. */
	_exit(victim_report());
}
