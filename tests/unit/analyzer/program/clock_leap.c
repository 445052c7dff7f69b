/* SPDX-License-Identifier: MIT */
/* Preloaded: every look at the monotonic clock finds it a second later than the one before. */
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *t)
{
	static atomic_int looks;
	int r = (int)syscall(SYS_clock_gettime, clock, t);

	if (!r && clock == CLOCK_MONOTONIC)
		t->tv_sec += atomic_fetch_add(&looks, 1);
	return r;
}
