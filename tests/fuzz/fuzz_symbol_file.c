/* SPDX-License-Identifier: MIT */
/* Any bytes as a file of cached symbols, after the checksum; otherwise as fuzz_dump_reader.c. */
#include <stdint.h>

#include "symbol_file_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	symbol_file_walk(data, size);
	return 0;
}
