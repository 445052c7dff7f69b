/* SPDX-License-Identifier: MIT */
/*
 * The child (analyzer_child.h) in which the frames of a dump are named: memanalyze (include/symbol_request.h). It gets
 * the dump and the descriptors of symbol_sources.h. What it gives back is believed to be names and no more:
 * dump_symbols_are_sound is asked here, and names are made printable where they are shown.
 */
#pragma once

#include "recording/dump_file.h"
#include "children/symbol_sources.h"

#define SYMBOL_SECONDS 30u             /* then names are left out … */
#define SYMBOL_END_SECONDS 60u         /* … and by then it is killed */
#define SYMBOL_DATA_BYTES (2ull << 30) /* what reads a file may have of them: analyzer/debug_info/jail.h */

struct symbol_answer {
	struct dump_symbols *symbols; /* to be freed */
	enum symbol_map map;          /* what became of perf-PID.map */
};

/*
 * Names the frames of the dump in the file. max_bytes: of the names. The answer's map is set, if the child came so far,
 * also where that fails.
 */
int symbol_child_run(const struct symbol_sources *sources, const struct dump_file *file, uint64_t max_bytes,
                     const struct patience *patience, struct symbol_answer *answer, struct err *e) WARN_UNUSED;
/* Why it names nothing; NULL: it does, or there is none. */
const char *symbol_child_refused_map(enum symbol_map map);
