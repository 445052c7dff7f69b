/* SPDX-License-Identifier: MIT */
/* A dump that was built, opened, and read to its end; for tests of the reader. */
#pragma once

#include "dump_builder.h"
#include "dump/dump_reader.h"

struct tally {
	struct dump *dump;
	uint64_t live, live_bytes, history, stacks, frames, modules, threads, notes;
	double bytes;
	char text[256]; /* of the last note or path */
};

/* Reads all there is. The statements of the header are asked for too: none may crash. */
struct tally read_all(struct dump *dump);

struct opened {
	int status;
	int fd;
	struct dump *dump;
	struct err error;
};

/* The first bytes of it. A status that is not 0 comes with one line of text. */
struct opened open_cut(const struct dump_builder *b, size_t size);
struct opened open_built(const struct dump_builder *b);
void close_opened(struct opened *o);
