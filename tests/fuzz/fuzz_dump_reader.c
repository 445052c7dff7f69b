/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a dump, through the reader, the report and all of its forms. With MEMATTACH_FUZZ (clang) this is
 * a libFuzzer target, half of whose mutations know the format; without it run_corpus.c gives it the files of the
 * corpus.
 */
#include <stdint.h>

#include "damage.h"
#include "mutate_dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	damage_report(data, size);
	return 0;
}

#ifdef MEMATTACH_FUZZ
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	return seed % 2 ? LLVMFuzzerMutate(data, size, max_size) : dump_mutate(data, size, seed);
}
#endif
