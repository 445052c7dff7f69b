/* SPDX-License-Identifier: MIT */
/*
 * Does to itself what a test plans for it. Lines on the standard input, numbers in hexadecimal, each answered by a
 * line:
 *
 *   M ADDRESS BYTES          maps memory there, for reading, writing and code
 *   W ADDRESS BYTES…         writes the bytes, two digits each
 *   C FUNCTION SHAPE SIZE MAKER RELEASE FIRST SECOND ROUNDS
 *                            calls an allocation function that many times with blocks that MAKER makes and RELEASE
 *                            frees, and answers "wrong N"; FIRST and SECOND are arguments behind those that the shape
 *                            names, ffffffff for the size of the block
 *
 * Nothing here allocates by itself. Ends at end of file.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hooks.h"

#define LIVE_MAX 61
#define ALIGNMENT 64
#define BYTES_MAX 1000 /* mimalloc has functions for no more */
#define IS_SIZE 0xffffffffu

/* Any function of integers. */
typedef uintptr_t (*any_fn)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

struct call {
	any_fn function, maker, release;
	uintptr_t shape, size, first, second, rounds;
};

struct block {
	uint8_t *at;
	size_t bytes;
	uint8_t pattern;
};

static char line[4096];
static struct block live[LIVE_MAX];
static unsigned wrong;

static int read_line(void)
{
	size_t length = 0;
	char c;

	while (length < sizeof line - 1 && read(STDIN_FILENO, &c, 1) == 1) {
		if (c == '\n') {
			line[length] = 0;
			return 1;
		}
		line[length++] = c;
	}
	return 0;
}

static void answer(const char *text, unsigned number)
{
	char out[32];
	size_t length = strlen(text);

	memcpy(out, text, length);
	for (int shift = 28; shift >= 0; shift -= 4)
		out[length++] = "0123456789abcdef"[number >> shift & 15];
	out[length++] = '\n';
	if (write(STDOUT_FILENO, out, length) != (ssize_t)length)
		_exit(1);
}

static void write_code(uintptr_t address, const char *digits)
{
	const uintptr_t page = address & ~(uintptr_t)4095;
	char *bytes = (char *)address; // NOLINT(performance-no-int-to-ptr)

	if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) && // NOLINT(performance-no-int-to-ptr)
	    mprotect((void *)page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC))   // NOLINT(performance-no-int-to-ptr)
		_exit(2);
	for (; digits[0] && digits[1]; digits += 2) {
		char two[3] = { digits[0], digits[1], 0 };
		*bytes++ = (char)strtoul(two, NULL, 16);
	}
}

static void check(const struct block *b)
{
	for (size_t i = 0; i < b->bytes; i++)
		wrong += b->at[i] != b->pattern;
}

static uintptr_t extra(uintptr_t argument, size_t bytes)
{
	return argument == IS_SIZE ? bytes : argument;
}

/* A block by the maker, which takes an alignment behind the size if it wants one. */
static uint8_t *make(const struct call *c, size_t bytes)
{
	return (uint8_t *)c->maker(bytes, ALIGNMENT, 0, 0, 0, 0); // NOLINT(performance-no-int-to-ptr)
}

static uint8_t *allocate(const struct call *c, size_t bytes)
{
	uintptr_t p = 0;

	switch (c->size) {
	case SIZE_ARG0: p = c->function(bytes, extra(c->first, bytes), extra(c->second, bytes), 0, 0, 0); break;
	case SIZE_ARG1: p = c->function(ALIGNMENT, bytes, 0, 0, 0, 0); break;
	case SIZE_ARG2: wrong += c->function((uintptr_t)&p, ALIGNMENT, bytes, 0, 0, 0) != 0; break;
	case SIZE_ARG0_X_ARG1: p = c->function(1, bytes, extra(c->first, bytes), 0, 0, 0); break;
	case SIZE_ARG1_X_ARG2: p = c->function(ALIGNMENT, 1, bytes, 0, 0, 0); break;
	default: break;
	}
	wrong += (c->size == SIZE_ARG1 || c->size == SIZE_ARG2) && p % ALIGNMENT;
	return (uint8_t *)p; // NOLINT(performance-no-int-to-ptr)
}

static void reallocate(const struct call *c, struct block *b, size_t bytes)
{
	const size_t old = b->bytes;
	uintptr_t p = (uintptr_t)b->at;

	if (c->size == SIZE_ARG1_X_ARG2)
		p = c->function(p, 1, bytes, 0, 0, 0);
	else if (c->size == SIZE_ARG2)
		p = c->function(p, ALIGNMENT, bytes, 0, 0, 0);
	else if (c->shape == SHAPE_RESIZE)
		bytes = c->function(p, old, 0, 0, 0, 0) < old ? 0 : old;
	else
		p = c->function(p, bytes, extra(c->first, bytes), 0, 0, 0);
	b->at = (uint8_t *)p; // NOLINT(performance-no-int-to-ptr)
	b->bytes = bytes < old ? bytes : old;
	wrong += !bytes;
}

static void drop(const struct call *c, struct block *b)
{
	if (!b->at)
		return;
	check(b);
	if (c->shape == SHAPE_FREE)
		c->function((uintptr_t)b->at, extra(c->first, b->bytes), extra(c->second, b->bytes), 0, 0, 0);
	else
		c->release((uintptr_t)b->at, 0, 0, 0, 0, 0);
	b->at = NULL;
}

static void run_round(const struct call *c, unsigned round)
{
	struct block *b = &live[round % LIVE_MAX];
	const size_t bytes = 1 + round * 2654435761u % BYTES_MAX;

	drop(c, b);
	*b = (struct block){ NULL, bytes, (uint8_t)round };
	b->at = c->shape == SHAPE_ALLOC || c->shape == SHAPE_OUT ? allocate(c, bytes) : make(c, bytes);
	if (!b->at) {
		wrong++;
		return;
	}
	memset(b->at, b->pattern, bytes);
	if (c->shape == SHAPE_REALLOC || c->shape == SHAPE_RESIZE)
		reallocate(c, b, 1 + round * 40503u % BYTES_MAX);
}

static uintptr_t number(char **at)
{
	return strtoul(*at, at, 16);
}

static void run(char *at)
{
	struct call c;

	c.function = (any_fn)number(&at); // NOLINT(performance-no-int-to-ptr)
	c.shape = number(&at);
	c.size = number(&at);
	c.maker = (any_fn)number(&at);   // NOLINT(performance-no-int-to-ptr)
	c.release = (any_fn)number(&at); // NOLINT(performance-no-int-to-ptr)
	c.first = number(&at);
	c.second = number(&at);
	c.rounds = number(&at);
	wrong = 0;
	for (unsigned i = 0; i < c.rounds; i++)
		run_round(&c, i);
	for (unsigned i = 0; i < LIVE_MAX; i++)
		drop(&c, &live[i]);
	answer("wrong ", wrong);
}

/* The functions that are there to be hooked; a library that nobody refers to is not linked. */
void *(*volatile const linked[])(size_t) = { malloc, valloc };

static void map(char *at)
{
	const uintptr_t address = number(&at), bytes = number(&at);
	void *place = (void *)address; // NOLINT(performance-no-int-to-ptr)

	if (mmap(place, bytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
	         -1, 0) != place)
		_exit(3);
	answer("wrong ", 0);
}

int main(void)
{
	free(linked[0](100));
	answer("ready ", 0);
	while (read_line()) {
		char *at = line + 1;

		if (line[0] == 'M') {
			map(at);
		} else if (line[0] == 'W') {
			const uintptr_t address = number(&at);
			write_code(address, at + strspn(at, " "));
			answer("wrong ", 0);
		} else {
			run(at);
		}
	}
	return 0;
}
