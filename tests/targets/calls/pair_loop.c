/* SPDX-License-Identifier: MIT */
/* Nothing but malloc and free: where every allocation is recorded, its one thread is nearly always in the recorder. */
#include "victim.h"

#include <stdlib.h>

#define PAIRS 100000

int main(void)
{
	victim_start("pair_loop");
	victim_ready();
	while (!victim_done()) {
		for (int i = 0; i < PAIRS; i++) {
			char *block = malloc(64);
			if (!block) {
				victim_wrong("no memory");
				break;
			}
			*(volatile char *)block = 1;
			free(block);
		}
		victim_round();
	}
	return victim_report();
}
