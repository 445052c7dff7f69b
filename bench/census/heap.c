/* SPDX-License-Identifier: MIT */
/*
 * A process of a known size, for bench/census/stops: census_heap GIB RESERVED. It makes GIB GiB of blocks of 1000
 * bytes, and keeps an array of pointers to them but for each 1,000th, which is leaked; maps RESERVED TiB of which each
 * 1,000,000,000th byte is there; says how many blocks it has leaked; and then rests.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { BYTES = 1000, LEAKED = 1000, APART = 1000000000 };

int main(int count, char **argument)
{
	if (count != 3)
		return 2;
	const size_t blocks = (size_t)(strtod(argument[1], NULL) * 0x1p30) / (BYTES + 8);
	const size_t reserved = (size_t)strtoull(argument[2], NULL, 10) << 40;
	void **list = malloc(blocks * sizeof(*list));
	size_t leaked = 0;

	/* Pages of 4 KiB: who copies their table has most to do. */
	if (!list || prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0)
		return 1;
	for (size_t i = 0; i < blocks; i++) {
		void *block = malloc(BYTES);
		if (!block)
			return 1;
		memset(block, 1, BYTES);
		list[i] = i % LEAKED ? block : NULL;
		leaked += i % LEAKED == 0;
	}
	if (reserved) {
		char *memory = mmap(NULL, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		                    -1, 0);
		if (memory == MAP_FAILED)
			return 1;
		for (size_t at = 0; at < reserved; at += APART)
			memory[at] = 1;
	}
	printf("%zu leaked\n", leaked);
	fflush(stdout);
	pause();
	return 0;
}
