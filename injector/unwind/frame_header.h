/* SPDX-License-Identifier: MIT */
/*
 * .eh_frame_hdr, by PT_GNU_EH_FRAME: where .eh_frame is, and a table of all functions, sorted by their entries (LSB
 * core, "10.6.2"). The one reader of it; what it says comes from a file that anybody may have written.
 */
#pragma once

#include "elf/module_file.h"

struct frame_header {
	uint64_t frames; /* address of .eh_frame as the header has it, 0: unknown */
	uint64_t base;   /* what the words of the rows are counted from */
	uint64_t rows;   /* address of the table, as it is read from the file */
	size_t count;    /* of rows; 0: there is no table, or not in the one encoding that linkers write */
};

/* A function: its entry, and the place of its description in .eh_frame. */
struct frame_row {
	int32_t entry, place;
};

/* False: there is none that can be read. */
bool frame_header_read(struct frame_header *h, const struct module_file *f);
/* All rows, malloc'ed; NULL: they cannot be read. What they take is the caller's to bound. */
struct frame_row *frame_header_rows(const struct frame_header *h, const struct module_file *f);

/* Of a description that much is looked at: the shortest one with padding. */
#define FRAME_DESCRIPTION_BYTES 24u
/*
 * The number of bytes of the function that begins at entry, by its description, which was read from place; 0: it is not
 * that of this entry, in one of the two encodings that compilers write. *rest: its bytes after that.
 */
uint64_t frame_header_description(const uint8_t description[FRAME_DESCRIPTION_BYTES], uint64_t place, uint64_t entry,
                                  const uint8_t **rest);
