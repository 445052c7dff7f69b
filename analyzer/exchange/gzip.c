/* SPDX-License-Identifier: MIT */
#include "exchange/gzip.h"

#include <limits.h>

#define WITH_HEADER (15 + 16)
#define MEMORY_LEVEL 8

int gzip_begin(struct gzip *g, FILE *out)
{
	g->stream = (z_stream){ 0 };
	g->out = out;
	if (deflateInit2(&g->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WITH_HEADER, MEMORY_LEVEL, Z_DEFAULT_STRATEGY))
		return -ENOMEM;
	return 0;
}

static void run(struct gzip *g, int flush)
{
	do {
		g->stream.next_out = g->buffer;
		g->stream.avail_out = sizeof g->buffer;
		deflate(&g->stream, flush);
		fwrite(g->buffer, 1, sizeof g->buffer - g->stream.avail_out, g->out);
	} while (!g->stream.avail_out);
}

void gzip_put(struct gzip *g, const void *bytes, size_t count)
{
	const unsigned char *from = bytes;

	while (count) {
		uInt part = count < UINT_MAX / 2 ? (uInt)count : UINT_MAX / 2;
		g->stream.next_in = (unsigned char *)from;
		g->stream.avail_in = part;
		run(g, Z_NO_FLUSH);
		from += part;
		count -= part;
	}
}

void gzip_end(struct gzip *g)
{
	g->stream.avail_in = 0;
	run(g, Z_FINISH);
	deflateEnd(&g->stream);
}
