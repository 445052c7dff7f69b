/* SPDX-License-Identifier: MIT */
/* W1/W2/W6.  churn [-t threads] [-d seconds] [-l live] [-m mode] [-q distinct sizes, default all] [-s distinct stacks,
 * 2^n, <=1024] ; mode churn (default) | pair churn: a live set of `live` objects per thread, each op frees a random one
 * and mallocs a new one of log-uniform size 16..512 through one of 1024 distinct ~30-deep stacks.  1 op = 1 free + 1
 * malloc. pair : p=malloc(64);free(p) (W6), ~5 deep. */
#include "bench.h"
#include <math.h>
#include <pthread.h>
#define NI __attribute__((noinline, noclone))
static uint16_t sizes[4096];
static double dur = 10, ticklen = 0.5;
static int nthr = 1;
static size_t live = 100000;
static int nsz = 4096;
static unsigned smask = 1023;
/* --- varying part: 5 levels x 4 call sites = 1024 stacks --- */
static NI void *leaf(size_t n, unsigned p)
{
	void *r = malloc(n);
	__asm__ volatile("/*leaf*/" ::"r"(p) : "memory");
	*(volatile uint64_t *)r = p;
	return r;
}
#define LVL(N, X, K)                                                                                                   \
	static NI void *N(size_t n, unsigned p)                                                                        \
	{                                                                                                              \
		char b[24 + 8 * (K)];                                                                                  \
		void *r;                                                                                               \
		__asm__ volatile("" ::"r"(b) : "memory");                                                              \
		switch (p & 3) {                                                                                       \
		case 0:                                                                                                \
			r = X(n, p >> 2);                                                                              \
			__asm__ volatile("/*%0*/" ::"i"(K * 4 + 0));                                                   \
			break;                                                                                         \
		case 1:                                                                                                \
			r = X(n, p >> 2);                                                                              \
			__asm__ volatile("/*%0*/" ::"i"(K * 4 + 1));                                                   \
			break;                                                                                         \
		case 2:                                                                                                \
			r = X(n, p >> 2);                                                                              \
			__asm__ volatile("/*%0*/" ::"i"(K * 4 + 2));                                                   \
			break;                                                                                         \
		default: r = X(n, p >> 2); __asm__ volatile("/*%0*/" ::"i"(K * 4 + 3));                                \
		}                                                                                                      \
		__asm__ volatile("" ::"r"(b) : "memory");                                                              \
		return r;                                                                                              \
	}
LVL(v5, leaf, 5) LVL(v4, v5, 4) LVL(v3, v4, 3) LVL(v2, v3, 2) LVL(v1, v2, 1) typedef struct {
	uint64_t seed;
	volatile uint64_t *ctr;
	volatile int *stop;
	ticker *k;
	void **place;
	int mode;
} ctx;
static NI int loop_churn(ctx *c)
{
	uint64_t s = c->seed;
	size_t L = live;
	void **sl = c->place;
	for (size_t i = 0; i < L; i++) {
		uint64_t x = xs64(&s);
		sl[i] = v1(sizes[x & 4095], (unsigned)(x >> 20) & smask);
	}
	if (c->k)
		tick_start(c->k, dur, ticklen);
	for (;;) {
		for (int j = 0; j < 256; j++) {
			uint64_t x = xs64(&s);
			size_t i = ((x >> 32) * L) >> 32;
			free(sl[i]);
			sl[i] = v1(sizes[x & 4095], (unsigned)(x >> 12) & smask);
		}
		if (c->k) {
			if (!tick_look(c->k, 256))
				break;
		} else {
			*c->ctr += 256;
			if (*c->stop)
				break;
		}
	}
	for (size_t i = 0; i < L; i++)
		free(sl[i]);
	return 1;
}
static NI int loop_pair(ctx *c)
{
	if (c->k)
		tick_start(c->k, dur, ticklen);
	for (;;) {
		for (int j = 0; j < 1024; j++) {
			void *p = malloc(64);
			__asm__ volatile("" ::"r"(p) : "memory");
			free(p);
		}
		if (c->k) {
			if (!tick_look(c->k, 1024))
				break;
		} else {
			*c->ctr += 1024;
			if (*c->stop)
				break;
		}
	}
	return 1;
}
/* --- fixed part: 22 frames between main and the loop --- */
#define FX(N, X, K)                                                                                                    \
	static NI int N(ctx *c)                                                                                        \
	{                                                                                                              \
		char b[16 + 8 * ((K) % 7)];                                                                            \
		__asm__ volatile("" ::"r"(b) : "memory");                                                              \
		int r = X(c);                                                                                          \
		__asm__ volatile("/*%0*/" ::"i"(1000 + K), "r"(b));                                                    \
		return r + 1;                                                                                          \
	}
/* clang-format off */
FX(f22, loop_churn, 22)
FX(f21, f22, 21) FX(f20, f21, 20) FX(f19, f20, 19) FX(f18, f19, 18) FX(f17, f18, 17) FX(f16, f17, 16)
FX(f15, f16, 15) FX(f14, f15, 14) FX(f13, f14, 13) FX(f12, f13, 12) FX(f11, f12, 11) FX(f10, f11, 10)
FX(f9, f10, 9) FX(f8, f9, 8) FX(f7, f8, 7) FX(f6, f7, 6) FX(f5, f6, 5) FX(f4, f5, 4) FX(f3, f4, 3)
FX(f2, f3, 2) FX(f1, f2, 1)
	/* clang-format on */
	static NI int run(ctx *c)
{
	int r = c->mode ? loop_pair(c) : f1(c);
	__asm__ volatile("");
	return r + 1;
}
static void *thr(void *a)
{
	int r = run(a);
	return (void *)(long)r;
}
int main(int ac, char **av)
{
	int mode = 0;
	for (int i = 1; i < ac; i++) {
		if (!strcmp(av[i], "-t"))
			nthr = atoi(av[++i]);
		else if (!strcmp(av[i], "-d"))
			dur = atof(av[++i]);
		else if (!strcmp(av[i], "-l"))
			live = atol(av[++i]);
		else if (!strcmp(av[i], "-i"))
			ticklen = atof(av[++i]);
		else if (!strcmp(av[i], "-q"))
			nsz = atoi(av[++i]);
		else if (!strcmp(av[i], "-s"))
			smask = atoi(av[++i]) - 1;
		else if (!strcmp(av[i], "-m"))
			mode = !strcmp(av[++i], "pair");
	}
	pin_from_env();
	hello();
	for (int i = 0; i < 4096; i++)
		sizes[i] = (uint16_t)(16 * pow(32.0, ((int)((long)i * nsz / 4096) + 0.5) / nsz));
	static ticker k;
	if (nthr == 1) {
		ctx c = { 88172645463325252ull, 0, 0, &k, malloc(sizeof(void *) * live), mode };
		run(&c);
		return 0;
	}
	static struct {
		volatile uint64_t v;
		char pad[120];
	} ctr[64];
	static volatile int stop;
	static ctx c[64];
	pthread_t th[64];
	for (int i = 0; i < nthr; i++) {
		c[i] = (ctx){ 88172645463325252ull * (i + 1) + i, &ctr[i].v, &stop, 0,
			      malloc(sizeof(void *) * live),      mode };
		pthread_create(&th[i], 0, thr, &c[i]);
	}
	usleep(200000);
	uint64_t last = 0;
	for (int i = 0; i < nthr; i++)
		last += ctr[i].v;
	tick_start(&k, dur, ticklen);
	for (;;) {
		usleep((useconds_t)(ticklen * 1e6));
		uint64_t n = 0;
		for (int i = 0; i < nthr; i++)
			n += ctr[i].v;
		uint64_t d = n - last;
		last = n;
		if (!tick_look(&k, d))
			break;
	}
	stop = 1;
	for (int i = 0; i < nthr; i++)
		pthread_join(th[i], 0);
	return 0;
}
