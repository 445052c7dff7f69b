/* SPDX-License-Identifier: MIT */
/*
 * Numbers as text. printf does this with arithmetic of any length; here most doubles are done with 128 bits, which is
 * exact too and several times as fast: a report of a hundred thousand stacks has a million numbers.
 */
#ifndef MEMATTACH_NUMBER_H
#define MEMATTACH_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#define NUMBER_TEXT 40

/* "%.15g", or "%.17g" where that reads back as another number; "%.0f" for what has no fraction and is below 2^53. The
 * length. */
size_t number_double(double value, char out[NUMBER_TEXT]);
size_t number_decimal(uint64_t value, char out[NUMBER_TEXT]);
size_t number_hex(uint64_t value, char out[NUMBER_TEXT]);

#endif
