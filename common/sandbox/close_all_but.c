/* SPDX-License-Identifier: MIT */
#include "sandbox/close_all_but.h"
#include "base/order.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DESCRIPTORS_MAX 65536u /* that are closed one by one */

ORDER_NUMBERS(by_number, int);

static void close_from_to(unsigned first, unsigned end)
{
	if (first >= end || syscall(SYS_close_range, first, end - 1, 0) == 0)
		return;
	for (unsigned fd = first; fd < end && fd < DESCRIPTORS_MAX; fd++)
		close((int)fd);
}

void close_all_but(int *keep, size_t count)
{
	unsigned first = 0;

	if (count)
		qsort(keep, count, sizeof *keep, by_number);
	for (size_t i = 0; i < count; i++) {
		if (keep[i] < 0)
			continue;
		close_from_to(first, (unsigned)keep[i]);
		first = (unsigned)keep[i] + 1;
	}
	close_from_to(first, ~0u);
}
