/* SPDX-License-Identifier: MIT */
/*
 * The arithmetic of sampling.
 *
 * The interval to the next sample is floor(R E), E exponential with mean 1: an allocation of S bytes is sampled if the
 * interval is less than S, so with p = P(R E < S) = 1 - exp(-S/R) exactly, S being an integer. E is -log(U) for U
 * uniform in (0, 1) as a real number, not as a multiple of 2^-53: the number of leading zeros of a stream of random
 * bits gives the binary exponent, 52 further bits the mantissa. So the tail is right beyond 36 means, and small
 * distances have full resolution.
 *
 * The weight of a sample is w = 1/p. For S much less than R, 1 - exp(-x) would lose all its digits; it is computed as
 * an expm1. Both functions are accurate to a few units in the last place on the ranges used here (the unit test
 * compares them to libm).
 *
 * The target's floating-point environment may be anything (unmasked exceptions, other rounding, sticky flags about to
 * be tested): the functions that compute are entered between arch_float_enter() and arch_float_leave(), are never
 * inlined, and take and give their values through memory.
 */
#include "exponential.h"

#include "arch/machine.h"
#include "dump_format.h"

#define LN2_HIGH 6.93147180369123816490e-01 /* the upper 32 bits, so that k * LN2_HIGH is exact */
#define LN2_LOW 1.90821492927058770002e-10
#define LN2_INVERSE 1.44269504088896338700
#define SQRT2 1.41421356237309504880
#define OUT_OF_LINE __attribute__((noinline, noclone))

#ifdef MEMATTACH_HOSTED
#define LOCAL
#else
#define LOCAL static
#endif

uint64_t exponential_random(uint64_t *state)
{
	uint64_t z = *state += 0x9E3779B97F4A7C15ull;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ z >> 27) * 0x94D049BB133111EBull;
	return z ^ z >> 31;
}

static double double_from_bits(uint64_t bits)
{
	double value;

	__builtin_memcpy(&value, &bits, sizeof(value));
	return value;
}

static uint64_t double_to_bits(double value)
{
	uint64_t bits;

	__builtin_memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* log(x) of a normal x > 0: log((1 + s)/(1 - s)) = 2 (s + s^3/3 + s^5/5 …), |s| <= 0.172. */
LOCAL double exponential_log(double x)
{
	uint64_t bits = double_to_bits(x);
	int64_t k = (int64_t)(bits >> 52) - 1023;
	double m = double_from_bits((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull);
	double s, z, sum = 0;

	if (m > SQRT2) {
		m *= 0.5;
		k++;
	}
	s = (m - 1) / (m + 1);
	z = s * s;
	for (int i = 23; i >= 3; i -= 2)
		sum = (sum + 1.0 / i) * z;
	return (double)k * LN2_HIGH + (2 * s + (2 * s * sum + (double)k * LN2_LOW));
}

/* Sums of series wait for each of their divisions: ten times as long as for a multiplication. */
#define TERMS 15
static const double reciprocals[TERMS + 1] = {
	0,       1.0,     1.0 / 2,  1.0 / 3,  1.0 / 4,  1.0 / 5,  1.0 / 6,  1.0 / 7,
	1.0 / 8, 1.0 / 9, 1.0 / 10, 1.0 / 11, 1.0 / 12, 1.0 / 13, 1.0 / 14, 1.0 / 15,
};

/* 1 - exp(-x) for x >= 0; *rest = exp(-x). */
LOCAL double exponential_expm1_negative(double x, double *rest)
{
	int64_t k;
	double r, e = 0, scale;

	if (x > 700) {
		*rest = 0;
		return 1;
	}
	k = (int64_t)(x * LN2_INVERSE + 0.5);
	/* -x = r - k ln 2, |r| <= 0.35; e = exp(r) - 1 by its series */
	r = ((double)k * LN2_HIGH - x) + (double)k * LN2_LOW;
	for (uint32_t i = x < 0x1p-7 ? 7 : TERMS; i >= 1; i--)
		e = (e + 1) * (r * reciprocals[i]);
	scale = double_from_bits((uint64_t)(1023 - k) << 52);
	*rest = scale * e + scale;
	return -(scale * e + (scale - 1));
}

/* -log(U) of a uniform U with so many leading zero bits, then a one, then the bits of mantissa. */
static OUT_OF_LINE void draw_distance(const uint64_t *mean_bytes, uint64_t zeros, uint64_t mantissa, uint64_t *distance)
{
	double m = double_from_bits((mantissa >> 12) | 0x3ff0000000000000ull);
	double e = (double)(int64_t)(zeros + 1) * (LN2_HIGH + LN2_LOW) - exponential_log(m);
	double d = e * (double)*mean_bytes;

	if (!(d > 0))
		*distance = 0;
	else if (d >= 0x1p62)
		*distance = 1ull << 62;
	else
		*distance = (uint64_t)(int64_t)d;
}

uint64_t exponential_draw(uint64_t *state, uint64_t mean_bytes)
{
	uint64_t zeros = 0, bits, distance;
	struct arch_float saved;

	if (mean_bytes <= 1)
		return 0;
	while (!(bits = exponential_random(state)) && zeros < 1024)
		zeros += 64;
	zeros += bits ? (uint64_t)__builtin_clzll(bits) : 0;
	saved = arch_float_enter();
	draw_distance(&mean_bytes, zeros, exponential_random(state), &distance);
	arch_float_leave(saved);
	return distance;
}

static void double_add(double *sum, double value)
{
	uint64_t *word = (uint64_t *)(void *)sum;
	uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED);

	if (value == 0)
		return;
	while (!__atomic_compare_exchange_n(word, &old, double_to_bits(double_from_bits(old) + value), 0,
	                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* What a sample weighs more than 1. Accurate for weights near 1, too: w - 1 = exp(-x) / p. */
static OUT_OF_LINE void add_excess(struct dump_stack *stack, const uint64_t *size, const uint64_t *rate_bytes)
{
	double bytes = (double)*size, q, p = exponential_expm1_negative((*size ? bytes : 1) / (double)*rate_bytes, &q);
	double excess = q / p, variance = q / (p * p);

	double_add(&stack->excess_count, excess);
	double_add(&stack->excess_bytes, bytes * excess);
	double_add(&stack->variance_count, variance);
	double_add(&stack->variance_bytes, bytes * bytes * variance);
}

void exponential_add_sample(struct dump_stack *stack, uint64_t size, uint64_t rate_bytes)
{
	struct arch_float saved;

	__atomic_fetch_add(&stack->taken_count, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&stack->taken_bytes, size, __ATOMIC_RELAXED);
	if (rate_bytes <= 1)
		return;
	saved = arch_float_enter();
	add_excess(stack, &size, &rate_bytes);
	arch_float_leave(saved);
}
