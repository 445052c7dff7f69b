/* SPDX-License-Identifier: MIT */
/* A stream compressed as gzip(1) does, without a name and a time: the same bytes each time. */
#pragma once

#include <stdio.h>
#include <zlib.h>

#include "base/err.h"

struct gzip {
	z_stream stream;
	FILE *out;
	unsigned char buffer[16384];
};

/* -ENOMEM; gzip_end in any other case. Errors of the stream out are the caller's business. */
int gzip_begin(struct gzip *gzip, FILE *out) WARN_UNUSED;
void gzip_put(struct gzip *gzip, const void *bytes, size_t count);
void gzip_end(struct gzip *gzip);
