/* SPDX-License-Identifier: MIT */
/* Stands beside a copy of memattach as its memanalyze: stops, so that a test can look at it and change things, and when
 * it is continued becomes the real one, which is beside it under the name real-memanalyze. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

	(void)argc;
	if (n <= 0)
		return 1;
	path[n] = 0;
	char *slash = strrchr(path, '/');
	if (!slash)
		return 1;
	snprintf(slash, sizeof path - (size_t)(slash - path), "/real-memanalyze");
	raise(SIGSTOP);
	execv(path, argv);
	return 1;
}
