/* SPDX-License-Identifier: MIT */
/*
 * How memattach has the frames of a dump named: it executes memanalyze with
 *
 *   memanalyze --write-symbols VERSION RIGHTS ROOT PID START SECONDS BYTES FILES
 *
 * whose exit status is 0 if the result is whole. RIGHTS says what it gives up before it reads anything
 * (common/sandbox/rights.h); where it cannot, it ends with REQUEST_NOT_DROPPED. Descriptors: SYMBOL_REQUEST_DUMP is the
 * dump, SYMBOL_REQUEST_RESULT a memory file of SYMBOL_RESULT_BYTES that begins with struct symbol_result. ROOT is the
 * root directory of the target, FILES are program files of its modules, ID:DESCRIPTOR, with commas between; all of
 * these are above SYMBOL_REQUEST_RESULT, 0 is none. Below ROOT there may be a perf-PID.map; START is when the target
 * began, in nanoseconds since 1970. After so many SECONDS, or with so many BYTES, names are left out and the result
 * says so. Anything else than these arguments ends memanalyze with SYMBOL_REQUEST_UNKNOWN: it is of another version.
 */
#pragma once

#include <stdint.h>

#include "dump_format.h"
#include "request_status.h"

#define SYMBOL_REQUEST_OPTION "--write-symbols"
#define SYMBOL_REQUEST_VERSION "2"
#define SYMBOL_REQUEST_UNKNOWN 64
#define SYMBOL_REQUEST_FILES_MAX 256u

enum { SYMBOL_REQUEST_DUMP = 0, SYMBOL_REQUEST_RESULT = 3 };

/* What became of perf-PID.map: it was read, or there is none; or why it was not. */
enum symbol_map {
	SYMBOL_MAP_FINE,
	SYMBOL_MAP_CLOSED,
	SYMBOL_MAP_MOUNTED,
	SYMBOL_MAP_SPECIAL,
	SYMBOL_MAP_FOREIGN,
	SYMBOL_MAP_LARGE,
	SYMBOL_MAP_OLD,
	SYMBOL_MAP_COUNT
};

/* Of the file of the result; what it says is for people. */
struct symbol_result {
	uint64_t done, total; /* frames */
	uint32_t map;         /* enum symbol_map */
	uint32_t reserved;
};
#define SYMBOL_RESULT_AT 4096u /* struct dump_symbols */
#define SYMBOL_RESULT_BYTES (SYMBOL_RESULT_AT + DUMP_SYMBOLS_BYTES_MAX)
