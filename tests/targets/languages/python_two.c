/* SPDX-License-Identifier: MIT */
/*
 * Two CPythons: libpython, and a second one that is preloaded after it, whose path is the argument, and which is bound
 * to its own symbols. The second one runs on the first thread, libpython is started later on another one.
 *
 *     PID n
 *     READY
 * while the second one waits for a line. The first one makes blocks of 60000, 60001, … bytes then, each in a function
 * whose code is freed, then the second one some of 80000, 80001, …; prints MADE, waits for a line, and prints OK.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct python {
	void (*init)(int signals);
	int (*run)(const char *code, void *flags);
};

static void find(struct python *python, void *library)
{
	*(void **)&python->init = dlsym(library, "Py_InitializeEx");
	*(void **)&python->run = dlsym(library, "PyRun_SimpleStringFlags");
	if (!python->init || !python->run)
		abort();
}

static void *run_first(void *context)
{
	const struct python *first = context;

	first->init(0);
	/* Time to be proved in, if somebody waits for that. */
	if (first->run("import time\ntime.sleep(2)\nkept = []\nfor i in range(50):\n"
	               "    names = {}\n    exec(f'def f{i:02}(k):\\n    k.append(bytearray({60000 + i}))\\n"
	               "f = f{i:02}', names)\n    names['f'](kept)\n    names.clear()\n",
	               NULL))
		abort();
	return NULL;
}

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) : NULL;
	struct python first, second;
	pthread_t thread;

	if (!library)
		abort();
	find(&first, RTLD_DEFAULT);
	find(&second, library);
	if (first.init == second.init)
		abort();
	second.init(0);
	printf("PID %d\nREADY\n", getpid());
	fflush(stdout);
	if (second.run("import sys\nsys.stdin.readline()\n", NULL))
		abort();
	if (pthread_create(&thread, NULL, run_first, &first) || pthread_join(thread, NULL))
		abort();
	if (second.run(
		    "kept = []\ndef late(n):\n    kept.append(bytearray(n))\nfor i in range(50):\n    late(80000 + i)\n"
		    "print('MADE', flush=True)\nsys.stdin.readline()\n",
		    NULL))
		abort();
	puts("OK two");
	return 0;
}
