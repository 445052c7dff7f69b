/* SPDX-License-Identifier: MIT */
#include "files/close_all_but.h"

#include <sys/syscall.h>
#include <unistd.h>

#define DESCRIPTORS_MAX 65536u /* that are closed one by one */

void close_all_but(const int *keep, size_t count)
{
	unsigned first = 0;

	for (size_t i = 0; i <= count; i++) {
		unsigned end = i < count ? (unsigned)keep[i] : ~0u;
		if (first < end && syscall(SYS_close_range, first, end - 1, 0) < 0)
			for (unsigned fd = first; fd < end && fd < DESCRIPTORS_MAX; fd++)
				close((int)fd);
		first = end + 1;
	}
}
