/* SPDX-License-Identifier: MIT */
/* Sizes, times and percentages as people write and read them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* "4096", "512k", "64kb", "64KiB", "1.5M", "2G", "1T": bytes, all multiples are binary, a part of a byte is dropped.
 * -EINVAL or -ERANGE with a text. */
int size_parse(const char *text, uint64_t *bytes, struct err *e) WARN_UNUSED;
/* "250ms", "30s", "1.5h", "2d", "1m30s", the largest unit first; a bare number is seconds. Nanoseconds, > 0. The errors
 * of size_parse. */
int size_parse_time(const char *text, uint64_t *ns, struct err *e) WARN_UNUSED;
/* "95", "0.5%": as a fraction. -EINVAL if it is no number; the caller says so, with the range that it allows. */
int size_parse_percent(const char *text, double *fraction) WARN_UNUSED;
/* "1.25 MiB", "512 B": at most 12 characters with the NUL. Returns buffer. */
#define SIZE_TEXT 16
const char *size_format(double bytes, char buffer[SIZE_TEXT]);
/* The same of a change, with its sign: "+1.25 MiB", "-512 B", "0 B". */
const char *size_format_change(double bytes, char buffer[SIZE_TEXT + 1]);
