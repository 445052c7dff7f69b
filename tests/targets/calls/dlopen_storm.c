/* SPDX-License-Identifier: MIT */
/* Loads and unloads a library (argument 1) as fast as it can, calls it in between, while another thread allocates. */
#include "victim.h"

#include <dlfcn.h>
#include <pthread.h>

static void *allocate(void *argument)
{
	uint64_t random = 362436069;

	(void)argument;
	while (!victim_done())
		victim_block(&random);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	victim_start("dlopen_storm");
	if (argc < 2 || pthread_create(&thread, NULL, allocate, NULL))
		return 2;
	victim_ready();
	while (!victim_done()) {
		void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
		if (!library) {
			victim_wrong("dlopen: %s", dlerror());
			continue;
		}
		int (*keep)(void) = (int (*)(void))dlsym(library, "plugin_keep");
		int (*drop)(void) = (int (*)(void))dlsym(library, "plugin_drop");
		if (!keep || !drop || keep() || drop())
			victim_wrong("the library's blocks are not as it left them");
		if (dlclose(library))
			victim_wrong("dlclose: %s", dlerror());
		victim_round();
	}
	pthread_join(thread, NULL);
	return victim_report();
}
