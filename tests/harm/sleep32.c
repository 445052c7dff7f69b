/* SPDX-License-Identifier: MIT */
/* A 32-bit program that waits for its end. */
#include "victim.h"

#include <unistd.h>

int main(void)
{
	victim_start("sleep32");
	victim_ready();
	while (!victim_done())
		pause();
	victim_round();
	return victim_report();
}
