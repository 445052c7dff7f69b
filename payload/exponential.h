/* SPDX-License-Identifier: MIT */
/*
 * The arithmetic of sampling: random numbers, the interval to the next sample, the weight of a sample. exponential.c is
 * the only file of the payload that computes in double.
 */
#pragma once

#include <stdint.h>

struct dump_stack;

/* splitmix64: the next 64 random bits of *state. */
uint64_t exponential_random(uint64_t *state);

/* How many bytes to pass over before the byte that is sampled: floor of Exp(mean_bytes), at most 2^62; 0 if mean_bytes
 * is 1 (every allocation) or 0. */
uint64_t exponential_draw(uint64_t *state, uint64_t mean_bytes);

/* Adds a sample of size bytes at rate bytes to the sums of *stack, see dump_format.h. */
void exponential_add_sample(struct dump_stack *stack, uint64_t size, uint64_t rate_bytes);

#ifdef MEMATTACH_HOSTED
double exponential_log(double x);
double exponential_expm1_negative(double x, double *rest);
#endif
