/* SPDX-License-Identifier: MIT */
/* Makes code at run time that calls what allocates, as a just-in-time compiler does, and says what it is in
 * /tmp/perf-PID.map; "PERF path" on stdout. */
#include "victim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096
#define BLOCK 3000

/* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret */
static const unsigned char program[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };

static void *kept[64];
static unsigned next;

VICTIM_FRAME static void take(void)
{
	char *block = malloc(BLOCK);

	if (!block) {
		victim_wrong("no memory");
		return;
	}
	memset(block, 7, BLOCK);
	free(kept[next % 64]);
	kept[next++ % 64] = block;
}

int main(void)
{
	char path[64];
	void (*made)(void (*)(void));

	victim_start("own_code");
	unsigned char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return 1;
	memcpy(page + 64, program, sizeof program);
	if (mprotect(page, PAGE, PROT_READ | PROT_EXEC))
		return 1;
	snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
	FILE *map = fopen(path, "we");
	if (!map ||
	    fprintf(map, "%lx %zx made_here \033[31mby the victim\n", (unsigned long)(page + 64), sizeof program) < 0 ||
	    fclose(map))
		victim_wrong("no perf map");
	page += 64;
	memcpy(&made, &page, sizeof made);
	victim_say("PERF %s", path);
	victim_ready();
	while (!victim_done()) {
		for (int i = 0; i < 10000; i++)
			made(take);
		victim_round();
	}
	return victim_report();
}
