/* SPDX-License-Identifier: MIT */
/* Common tick/reporting code. No heap use after start-up.
 * Output, one line per tick (default every 0.5 s):
 *   T <t_s> <dt_s> <ops_in_tick> <ops_per_s> <cpu_s_in_tick> <max_gap_us>
 * and at the end:  FINAL <ops_per_s> <total_ops> <seconds>
 * max_gap_us: longest time between two looks at the clock in the tick (a stall = attach pause).
 * env: BENCH_CPU=0 or 0,1 pins the process (sched_setaffinity) without taskset. */
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static inline double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}
static inline double cpu_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}
static inline uint64_t xs64(uint64_t *s)
{
	uint64_t x = *s;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *s = x;
}
static inline void emit(const char *fmt, double a, double b, double c, double d, double e, double f)
{
	char b_[200];
	int n = snprintf(b_, sizeof b_, fmt, a, b, c, d, e, f);
	if (write(1, b_, n) < 0) {
	}
}
typedef struct {
	double t0, tl, cl, dur, tick, lastlook, gap;
	uint64_t ops, total;
} ticker;
static void tick_start(ticker *k, double dur, double tick)
{
	memset(k, 0, sizeof *k);
	k->t0 = k->tl = k->lastlook = now_s();
	k->cl = cpu_s();
	k->dur = dur;
	k->tick = tick;
}
/* add n ops, look at the clock; returns 0 when the run is over */
static int tick_look(ticker *k, uint64_t n)
{
	double t = now_s(), g = t - k->lastlook;
	k->lastlook = t;
	if (g > k->gap)
		k->gap = g;
	k->ops += n;
	k->total += n;
	if (t - k->tl >= k->tick) {
		double c = cpu_s();
		emit("T %.3f %.4f %.0f %.1f %.4f %.0f\n", t - k->t0, t - k->tl, (double)k->ops, k->ops / (t - k->tl),
		     c - k->cl, k->gap * 1e6);
		k->tl = t;
		k->cl = c;
		k->ops = 0;
		k->gap = 0;
		k->lastlook = now_s();
	}
	if (t - k->t0 >= k->dur) {
		emit("FINAL %.1f %.0f %.3f\n", k->total / (t - k->t0), (double)k->total, t - k->t0, 0, 0, 0);
		return 0;
	}
	return 1;
}
static void pin_from_env(void)
{
	const char *e = getenv("BENCH_CPU");
	if (!e)
		return;
	cpu_set_t s;
	CPU_ZERO(&s);
	for (const char *p = e; *p;) {
		CPU_SET(strtol(p, (char **)&p, 10), &s);
		if (*p == ',')
			p++;
	}
	sched_setaffinity(0, sizeof s, &s);
}
static void hello(void)
{
	char b[64];
	int n = snprintf(b, sizeof b, "PID %d\n", (int)getpid());
	if (write(1, b, n) < 0) {
	}
}
