/* SPDX-License-Identifier: MIT */
/*
 * Where functions begin and end, by the table in .eh_frame_hdr, which is sorted by their entries, and by the dynamic
 * symbols. Read from the file of the module; what it says is checked against the executable segments.
 */
#pragma once

#include "unwind/frame_header.h"

struct function_table {
	const struct module_file *file;
	struct frame_row *rows;
	size_t count;  /* 0: the module has no such table */
	uint64_t base; /* what the rows are counted from */
};

/* Never fails: what cannot be read is an empty table. function_table_close afterwards. */
void function_table_open(struct function_table *t, const struct module_file *file);
void function_table_close(struct function_table *t);

/* The length of the function whose entry is address, 0 unknown. symbol_bytes is what a symbol says (0: nothing). */
uint64_t function_table_bytes(const struct function_table *t, uint64_t address, uint64_t symbol_bytes);
/* The function, or part of one, that holds the address: where it begins and its length, by the table alone. False: none
 * is described there. */
bool function_table_around(const struct function_table *t, uint64_t address, uint64_t *start, uint64_t *bytes);
/* Does the description of this entry begin with a frame that is there already? Then it is no function, but a part of
 * one that the compiler has put elsewhere (or a list of the linker's stubs). */
bool function_table_is_part(const struct function_table *t, uint64_t address);
/* The last entry below address, and the first above it, of functions that are known; 0: none. */
uint64_t function_table_before(const struct function_table *t, uint64_t address);
uint64_t function_table_after(const struct function_table *t, uint64_t address);
