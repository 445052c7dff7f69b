/* SPDX-License-Identifier: MIT */
/*
 * victim [LIBRARY]: allocates, says "ready" on its standard output, and obeys the letters on its standard input: o
 * opens the library, n opens it in a namespace of its own, c closes it, each answered by a line. Ends at end of file.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Function pointers in data, as in Debian's redis-server, and one that is taken in code. */
void *(*volatile table[])(size_t) = { malloc, NULL };
void (*volatile release)(void *);

/* Tables of an allocator that the program puts functions of its own into, as Debian 13's redis-server does. */
void *(*volatile allocate)(size_t) = malloc;
void (*volatile discard)(void *) = free;

static void *own_allocate(size_t bytes)
{
	return malloc(bytes + 1);
}

static void own_discard(void *block)
{
	free(block);
}

static void say(const char *text)
{
	if (write(STDOUT_FILENO, text, 6) != 6)
		_exit(1);
}

int main(int argc, char **argv)
{
	void *library = NULL;
	char order;

	release = free;
	allocate = own_allocate;
	discard = own_discard;
	discard(allocate(10));
	free(malloc(100));
	release(table[0](10));
	say("ready\n");
	while (read(STDIN_FILENO, &order, 1) == 1) {
		if (order == 'o' && argc > 1)
			library = dlopen(argv[1], RTLD_LAZY);
		if (order == 'c' && library)
			dlclose(library);
#ifdef LM_ID_NEWLM
		if (order == 'n' && argc > 1)
			library = dlmopen(LM_ID_NEWLM, argv[1], RTLD_LAZY);
#endif
		if (order == 'r')
			free(realloc(calloc(1, 10), 20));
		say("done.\n");
	}
	return 0;
}
