/* SPDX-License-Identifier: MIT */
/*
 * Appends the names of its frames to a dump on disk, which is complete without them. First come the bytes, beyond all
 * regions; then the descriptor of the region, then the number of regions: so the file is a valid dump at every moment,
 * and one that holds the names only when they are there. What cannot be written to its end is cut off again. A child
 * does it, as it writes the copies (dump_file.h).
 */
#pragma once

#include "recording/dump_file.h"

/* How many bytes the limit of the dump leaves for names. */
uint64_t dump_append_room(const struct dump_writer *w);

/* -ENOSPC and others; -EINTR: given up, the dump has no names. */
int dump_append_symbols(struct dump_file *f, const struct dump_symbols *symbols, const struct patience *patience,
                        struct err *e) WARN_UNUSED;
