/* SPDX-License-Identifier: MIT */
/*
 * A stream whose lines are no wider than a terminal: a longer one is broken at a blank, and goes on below its text. A
 * word that is wider than a line is not broken: it may be a path that is to be copied. Each character counts as one
 * column, sequences that colour as none.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* Writes to out, which the caller closes after this stream; NULL: out of memory. */
FILE *text_wrap_open(FILE *out, size_t columns);
