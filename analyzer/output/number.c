/* SPDX-License-Identifier: MIT */
#include "number.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * What the short way takes: with 17 digits the scale 10^k is 10^1 to 10^24, so that m 5^k (m below 2^53) fits into 128
 * bits, and that of 15 digits, 10^-1 to 10^22, is exact in a double but for the first.
 */
#define LEAST 1e-7
#define MOST 1e15
#define DIGITS_SHORT 15
#define DIGITS_LONG 17

/* digits * 10^-scale */
struct decimal {
	uint64_t digits;
	int scale;
};

static uint64_t power(uint64_t base, int n)
{
	uint64_t p = 1;

	while (n-- > 0)
		p *= base;
	return p;
}

/* Exactly rounded to this scale, half to even as printf does. */
static struct decimal scaled(double value, int scale)
{
	int exponent;
	uint64_t mantissa = (uint64_t)ldexp(frexp(value, &exponent), 53);
	unsigned __int128 product = (unsigned __int128)mantissa * power(5, scale);
	int down = 53 - exponent - scale; /* value 10^scale = product 2^-down */

	if (down <= 0)
		return (struct decimal){ (uint64_t)(product << -down), scale };
	unsigned __int128 rest = product & (((unsigned __int128)1 << down) - 1);
	unsigned __int128 half = (unsigned __int128)1 << (down - 1);
	uint64_t digits = (uint64_t)(product >> down);
	digits += rest > half || (rest == half && digits & 1);
	return (struct decimal){ digits, scale };
}

/* The place of the first digit: 10^place <= value < 10^(place + 1). */
static int place_of(double value)
{
	static const double powers[] = { 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1e0,  1e1,  1e2,  1e3,
		                         1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14 };
	int exponent;

	frexp(value, &exponent);
	int guess = (int)floor((exponent - 1) * 0.30102999566398120);
	/* The constants are rounded: where value equals one it may be just below the power, which rounding then makes
	 * up for. */
	return guess + 1 <= 14 && value >= powers[guess + 1 + 7] ? guess + 1 : guess;
}

/* As %.{digits}g writes them. */
static size_t put(const struct decimal *d, int digits, char *out)
{
	char text[NUMBER_TEXT];
	int n = (int)number_decimal(d->digits, text);
	int place = n - 1 - d->scale;
	size_t used = 0;

	while (n > 1 && text[n - 1] == '0')
		n--;
	if (place < -4 || place >= digits) {
		out[used++] = text[0];
		if (n > 1)
			out[used++] = '.';
		memcpy(out + used, text + 1, (size_t)n - 1);
		used += (size_t)n - 1;
		return used + (size_t)sprintf(out + used, "e%c%02d", place < 0 ? '-' : '+', abs(place));
	}
	if (place < 0) {
		memcpy(out, "0.000", 5);
		used = (size_t)(1 - place);
		memcpy(out + used, text, (size_t)n);
		return used + (size_t)n;
	}
	for (int i = 0; i < n || i <= place; i++) {
		if (i == place + 1)
			out[used++] = '.';
		out[used++] = i < n ? text[i] : '0';
	}
	return used;
}

static size_t put_short_way(double value, char *out)
{
	static const double powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
		                         1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
	int place = place_of(value);
	struct decimal d = scaled(value, DIGITS_SHORT - 1 - place);

	/* Both are exact, so the quotient is what strtod would give. */
	if ((double)d.digits / powers[d.scale] == value)
		return put(&d, DIGITS_SHORT, out);
	d = scaled(value, DIGITS_LONG - 1 - place);
	return put(&d, DIGITS_LONG, out);
}

size_t number_double(double value, char out[NUMBER_TEXT])
{
	double magnitude = fabs(value);
	size_t sign = signbit(value) ? 1 : 0;

	out[0] = '-';
	if (magnitude < 9007199254740992.0 && magnitude == floor(magnitude))
		return sign + number_decimal((uint64_t)magnitude, out + sign);
	if (magnitude >= LEAST && magnitude < MOST)
		return sign + put_short_way(magnitude, out + sign);
	int n = snprintf(out, NUMBER_TEXT, "%.15g", value);
	if (strtod(out, NULL) != value)
		n = snprintf(out, NUMBER_TEXT, "%.17g", value);
	return (size_t)n;
}

size_t number_decimal(uint64_t value, char out[NUMBER_TEXT])
{
	char text[20];
	size_t at = sizeof text;

	do
		text[--at] = (char)('0' + value % 10);
	while (value /= 10);
	memcpy(out, text + at, sizeof text - at);
	return sizeof text - at;
}

size_t number_hex(uint64_t value, char out[NUMBER_TEXT])
{
	int digits = value ? (67 - __builtin_clzll(value)) / 4 : 1;

	out[0] = '0';
	out[1] = 'x';
	for (int i = 0; i < digits; i++)
		out[2 + i] = "0123456789abcdef"[value >> 4 * (digits - 1 - i) & 15];
	return (size_t)digits + 2;
}
