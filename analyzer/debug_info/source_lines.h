/* SPDX-License-Identifier: MIT */
/*
 * Source lines and inlined calls of one image from its DWARF. libdw's own searches walk a whole compilation unit for
 * each address; here each unit that is asked for is walked once, and its functions are kept sorted.
 */
#pragma once

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"

/* One level of calls at an address, innermost first; strings belong to libdw. */
struct source_line {
	const char *linkage; /* mangled name, or NULL */
	const char *name;    /* name as in the source, or NULL */
	const char *file;    /* or NULL */
	const char *from;    /* the directory that file is relative to; NULL: it is not, or that is not known */
	int line;            /* 0 unknown */
};

#define SOURCE_DEPTH_MAX 64

struct unit_range;
struct unit;

struct source_lines {
	Dwfl_Module *module;
	bool split;                /* some functions are in .dwo files */
	bool failed;               /* no memory for all of them */
	bool numbers;              /* lines and files are wanted, not functions alone */
	Dwarf_Addr bias;           /* module address = DWARF address + bias */
	struct unit_range *ranges; /* of the units that .debug_aranges does not know; made when first missed */
	size_t range_count;
	int ranges_made;
	struct unit *units;
	size_t unit_count;
	struct map unit_of; /* offset of the unit -> index in units */
};

void source_lines_open(struct source_lines *lines, Dwfl_Module *module, bool numbers);
/* How many levels were found, 0 if the address is in no known unit; all but the last are inlined. */
size_t source_lines_find(struct source_lines *lines, uint64_t address, struct source_line out[SOURCE_DEPTH_MAX]);
