/* SPDX-License-Identifier: MIT */
/*
 * A pool of short functions in one file with their callers, which keep values in registers that the pool leaves alone:
 *
 *   - GCC does by itself (-fipa-ra): sums of many integers and of many doubles are carried on across the calls
 *   - code that fills every register which a called function may change, calls, and compares all those that the pool
 *     was seen to leave alone before anybody attached; with AVX or AVX-512 their whole length, and mask registers
 *
 * Two threads do both all the time. At the first value that is wrong the program aborts. With OWN_MALLOC the pool is
 * the program's malloc and free.
 */
#include "victim.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#ifdef OWN_MALLOC
#define NAME "kept_registers_malloc"
#define pool_get malloc
#define pool_put free
#else
#define NAME "kept_registers"
#endif

#define BLOCK_BYTES 256u
#define POOL_BYTES (1u << 20)
#define LARGE_BYTES (16u << 20)
#define ROUNDS 2000u
#define CALIBRATIONS 1000u
#define LEFT_ALONE_MIN 4 /* general registers: the test would show little with fewer */

/* ---- the pool ---- */

struct block {
	struct block *next;
};

static unsigned char pool[POOL_BYTES] __attribute__((aligned(64)));
static unsigned char large[LARGE_BYTES] __attribute__((aligned(64)));
static size_t pool_used, large_used;
static __thread struct block *unused;

VICTIM_FRAME void *pool_get(size_t bytes);
VICTIM_FRAME void pool_put(void *block);

void *pool_get(size_t bytes)
{
	struct block *b = unused;

	if (bytes > BLOCK_BYTES) {
		size_t at = __atomic_fetch_add(&large_used, (bytes + 63) & ~63ull, __ATOMIC_RELAXED);
		return at + bytes <= sizeof large ? large + at : NULL;
	}
	if (b) {
		unused = b->next;
		return b;
	}
	size_t at = __atomic_fetch_add(&pool_used, BLOCK_BYTES, __ATOMIC_RELAXED);
	return at < sizeof pool ? pool + at : NULL;
}

void pool_put(void *block)
{
	struct block *b = block;

	if ((size_t)((unsigned char *)block - pool) >= sizeof pool)
		return;
	b->next = unused;
	unused = b;
}

#ifdef OWN_MALLOC
/* What the C library needs of them. */
void *calloc(size_t count, size_t bytes)
{
	void *block = malloc(count * bytes);

	return block ? memset(block, 0, count * bytes) : NULL;
}

void *realloc(void *old, size_t bytes)
{
	void *block = malloc(bytes);
	size_t room = (size_t)((unsigned char *)old - pool) < sizeof pool ? BLOCK_BYTES : bytes;

	if (old && block)
		memcpy(block, old, bytes < room ? bytes : room);
	free(old);
	return block;
}
#endif

/* ---- callers that GCC has keep values in registers ---- */

static VICTIM_FRAME uint64_t integers(uint64_t seed)
{
	uint64_t a = seed, b = a * 3, c = a * 5, d = a * 7, e = a * 11, f = a * 13, g = a * 17, h = a * 19, i = a * 23;

	for (unsigned k = 0; k < 64; k++) {
		void *block = pool_get(40);
		a += b ^ k;
		b += c;
		c ^= d;
		d += e;
		pool_put(block);
		e ^= f;
		f += g;
		g ^= h;
		h += i;
		i ^= a;
	}
	return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ i;
}

static VICTIM_FRAME double doubles(double seed)
{
	double a = seed, b = a * 3, c = a * 5, d = a * 7, e = a * 11, f = a * 13, g = a * 17, h = a * 19;

	for (unsigned k = 0; k < 64; k++) {
		void *block = pool_get(72);
		a += b / 2;
		b += c / 4;
		c -= d / 8;
		d += e / 4;
		pool_put(block);
		e -= f / 8;
		f += g / 4;
		g -= h / 8;
		h += a / 1024;
	}
	return a + b + c + d + e + f + g + h;
}

/* ---- a caller that compares registers ---- */

/* The layout is known to kept_registers_call.S. */
enum { RAX, RCX, RDX, RSI, RDI, R8, R9, R10, R11, GENERAL };
struct registers {
	uint64_t vector[32][8];
	uint64_t mask[8];
	uint64_t general[GENERAL];
};
typedef void call_function(const struct registers *in, struct registers *out, void *callee);
call_function call_sse, call_avx, call_avx512;

static call_function *call;
static unsigned vectors, words, masks; /* that are filled: so many registers of so many words, and so many masks */

/* What a function leaves alone. */
struct survivors {
	bool general[GENERAL];
};
static struct survivors get_leaves, put_leaves;

/* Only here: code that takes the address of an allocator's function is taken for a part of the allocator. */
static void *volatile pool_functions[] = { (void *)pool_get, (void *)pool_put };

static void choose_call(void)
{
	call = call_sse, vectors = 16, words = 2, masks = 0;
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx"))
		call = call_avx, words = 4;
	if (__builtin_cpu_supports("avx512bw"))
		call = call_avx512, vectors = 32, words = 8, masks = 8;
}

static void fill(struct registers *r, uint64_t *random)
{
	for (size_t i = 0; i < sizeof *r / sizeof(uint64_t); i++)
		((uint64_t *)r)[i] = victim_random(random);
}

/* Vector and mask registers must all be left alone: the pool has no use for them. */
static bool vectors_are_kept(const struct registers *in, const struct registers *out)
{
	for (unsigned i = 0; i < vectors; i++)
		if (memcmp(in->vector[i], out->vector[i], words * sizeof(uint64_t)))
			return false;
	return !memcmp(in->mask, out->mask, masks * sizeof(uint64_t));
}

static _Noreturn void stop(const char *what, unsigned number)
{
	victim_wrong("%s %u", what, number);
	abort();
}

static void compare(const struct survivors *leaves, const struct registers *in, const struct registers *out)
{
	for (unsigned i = 0; i < GENERAL; i++)
		if (leaves->general[i] && in->general[i] != out->general[i])
			stop("a general register changed:", i);
	if (!vectors_are_kept(in, out))
		stop("a vector register changed", 0);
}

/* Gets a block and puts it back; what both left in the registers is in out. */
static void get_and_put(struct registers in[2], struct registers out[2], uint64_t *random)
{
	fill(&in[0], random);
	in[0].general[RDI] = 100;
	call(&in[0], &out[0], pool_functions[0]);
	if (!out[0].general[RAX])
		stop("there is no block", 0);
	fill(&in[1], random);
	in[1].general[RDI] = out[0].general[RAX];
	call(&in[1], &out[1], pool_functions[1]);
}

static void note(struct survivors *leaves, const struct registers *in, const struct registers *out)
{
	for (unsigned i = 0; i < GENERAL; i++)
		leaves->general[i] &= in->general[i] == out->general[i];
	if (!vectors_are_kept(in, out))
		stop("the pool uses vector registers", 0);
}

static void calibrate(void)
{
	struct registers in[2], out[2];
	uint64_t random = 1;
	unsigned left_alone = 0;

	memset(&get_leaves, true, sizeof get_leaves);
	memset(&put_leaves, true, sizeof put_leaves);
	for (unsigned i = 0; i < CALIBRATIONS; i++) {
		get_and_put(in, out, &random);
		note(&get_leaves, &in[0], &out[0]);
		note(&put_leaves, &in[1], &out[1]);
	}
	for (unsigned i = 0; i < GENERAL; i++)
		left_alone += get_leaves.general[i];
	if (left_alone < LEFT_ALONE_MIN)
		stop("the pool leaves too few registers alone:", left_alone);
}

/* ---- rounds ---- */

static uint64_t integers_expected;
static double doubles_expected;

static void run_round(uint64_t *random)
{
	struct registers in[2], out[2];

	for (unsigned i = 0; i < ROUNDS; i++) {
		get_and_put(in, out, random);
		compare(&get_leaves, &in[0], &out[0]);
		compare(&put_leaves, &in[1], &out[1]);
		if (integers(42) != integers_expected)
			stop("the sum of integers is wrong", 0);
		if (doubles(42) != doubles_expected)
			stop("the sum of doubles is wrong", 0);
	}
	victim_round();
}

static void *run(void *seed)
{
	uint64_t random = *(uint64_t *)seed;

	pool_put(pool_get(1)); /* the next one comes from the list, as in the calibration */
	while (!victim_done())
		run_round(&random);
	return NULL;
}

int main(void)
{
	static uint64_t seeds[] = { 2, 3 };
	pthread_t other;

	victim_start(NAME);
	choose_call();
	pool_put(pool_get(1));
	calibrate();
	integers_expected = integers(42);
	doubles_expected = doubles(42);
	if (pthread_create(&other, NULL, run, &seeds[0]))
		stop("there is no thread", 0);
	victim_ready();
	run(&seeds[1]);
	pthread_join(other, NULL);
	return victim_report();
}
