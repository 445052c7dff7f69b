/* SPDX-License-Identifier: MIT */
/*
 * Stands beside a copy of memattach as its memanalyze: becomes the real one, which is beside it under the name
 * real-memanalyze, with stop-at-filter.so loaded before it, which stops it when it has given up its rights and before
 * it reads anything. So a test can look at it and change things.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char path[4096], preload[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

	(void)argc;
	if (n <= 0)
		return 1;
	path[n] = 0;
	char *slash = strrchr(path, '/');
	if (!slash)
		return 1;
	snprintf(slash, sizeof path - (size_t)(slash - path), "/real-memanalyze");
	snprintf(preload, sizeof preload, "%.*s/stop-at-filter.so", (int)(slash - path), path);
	setenv("LD_PRELOAD", preload, 1);
	if (getenv("ASAN_OPTIONS"))
		setenv("ASAN_OPTIONS", "detect_leaks=0:verify_asan_link_order=0", 1);
	execv(path, argv);
	return 1;
}
