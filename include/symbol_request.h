/* SPDX-License-Identifier: MIT */
/*
 * How memattach has the frames of a dump named: it executes memanalyze with
 *
 *   memanalyze --write-symbols VERSION ROOT PERF SECONDS BYTES FILES
 *
 * whose exit status is 0 if the result is whole. Descriptors: SYMBOL_REQUEST_DUMP is the dump, SYMBOL_REQUEST_RESULT a
 * memory file of SYMBOL_RESULT_BYTES that begins with struct symbol_result. ROOT is the root directory of the target,
 * PERF its perf-PID.map, FILES are program files of its modules, ID:DESCRIPTOR, with commas between; all of these are
 * above SYMBOL_REQUEST_RESULT, 0 is none. After so many SECONDS, or with so many BYTES, names are left out and the
 * result says so. Anything else than these arguments ends memanalyze with SYMBOL_REQUEST_UNKNOWN: it is of another
 * version.
 */
#ifndef MEMATTACH_SYMBOL_REQUEST_H
#define MEMATTACH_SYMBOL_REQUEST_H

#include <stdint.h>

#include "dump_format.h"

#define SYMBOL_REQUEST_OPTION "--write-symbols"
#define SYMBOL_REQUEST_VERSION "1"
#define SYMBOL_REQUEST_UNKNOWN 64
#define SYMBOL_REQUEST_FILES_MAX 256u

enum { SYMBOL_REQUEST_DUMP = 0, SYMBOL_REQUEST_RESULT = 3 };

/* Of the file of the result; what the two members done and total say is for people. */
struct symbol_result {
	uint64_t done, total; /* frames */
};
#define SYMBOL_RESULT_AT 4096u /* struct dump_symbols */
#define SYMBOL_RESULT_BYTES (SYMBOL_RESULT_AT + DUMP_SYMBOLS_BYTES_MAX)

#endif
