/* SPDX-License-Identifier: MIT */
/* Any bytes as a file of --census, compared with themselves, as text and JSON, and as a page. As fuzz_dump_reader.c it
 * needs no libFuzzer. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "census/census_growth.h"
#include "census/census_page.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *nowhere;
	struct census_input c;
	struct census_growth g;
	struct err e;

	if (!nowhere && !(nowhere = fopen("/dev/null", "we")))
		abort();
	if (census_input_parse(&c, data, size, &e))
		return 0;
	if (census_growth_make(&g, &c, &c, &e) == 0) {
		census_growth_text(&g, 0, nowhere);
		census_growth_json(&g, nowhere);
	}
	census_growth_done(&g);
	if (census_page(&c, "x.census", nowhere))
		abort();
	census_input_done(&c);
	return 0;
}
