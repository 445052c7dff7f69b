/* SPDX-License-Identifier: MIT */
/*
 * Loads memattach's own payload (argument 1, a file) under the name that memattach gives it, and says in its session
 * block that the process of argument 2 is the memattach that runs the session.
 */
#include "victim.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "control.h"

/* Field 22 of /proc/PID/stat. */
static uint64_t start_of(int pid)
{
	char path[64], text[1024] = "";

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	FILE *f = fopen(path, "re");
	if (!f || !fgets(text, sizeof text, f))
		exit(1);
	fclose(f);
	char *at = strrchr(text, ')');
	for (int i = 2; at && i < 22; i++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

static void *load(const char *file)
{
	char buffer[65536], path[64];
	int in = open(file, O_RDONLY | O_CLOEXEC), fd = memfd_create("memattach-payload", 0);
	ssize_t n;

	while ((n = read(in, buffer, sizeof buffer)) > 0)
		if (write(fd, buffer, (size_t)n) != n)
			exit(1);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	void *handle = dlopen(path, RTLD_NOW);
	if (!handle) {
		puts(dlerror());
		exit(1);
	}
	return handle;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 1;
	struct memattach_session *session = dlsym(load(argv[1]), "memattach_session");
	if (!session)
		return 1;
	session->state = SESSION_STARTED;
	session->injector_pid = atoi(argv[2]);
	session->injector_start_ticks = start_of(session->injector_pid);
	victim_start("fakeload");
	victim_ready();
	while (!victim_done()) {
		void *volatile p = malloc(100);
		free(p);
		usleep(10000);
	}
	return victim_report();
}
