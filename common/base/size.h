/* SPDX-License-Identifier: MIT */
/* Sizes, times and percentages as people write and read them. */
#ifndef MEMATTACH_SIZE_H
#define MEMATTACH_SIZE_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"

/* "512k", "1M", "2G", "4096": bytes, binary multiples, a final B or iB is allowed. -EINVAL or -ERANGE with a text. */
int size_parse(const char *text, uint64_t *bytes, struct err *e) WARN_UNUSED;
/* "30s", "5m", "1h", "250ms", "1.5s"; a bare number is seconds. Nanoseconds, > 0. */
int time_parse(const char *text, uint64_t *ns, struct err *e) WARN_UNUSED;
/* "95", "0.5%": as a fraction. -EINVAL if it is no number; the caller says so, with the range that it allows. */
int percent_parse(const char *text, double *fraction) WARN_UNUSED;
/* "1.25 MiB", "512 B": at most 12 characters with the NUL. Returns buffer. */
#define SIZE_TEXT 16
const char *size_format(double bytes, char buffer[SIZE_TEXT]);

#endif
