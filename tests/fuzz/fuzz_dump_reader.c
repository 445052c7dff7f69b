/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a dump, through the reader, the report and all of its forms. With MEMATTACH_FUZZ (clang) this is
 * a libFuzzer target; without it run_corpus.c gives it the files of the corpus.
 */
#include <stdint.h>

#include "damage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	damage_report(data, size);
	return 0;
}
