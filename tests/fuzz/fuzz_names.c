/* SPDX-License-Identifier: MIT */
/* Any bytes as the name of a function: demangled, made printable, cleaned for other programs, shortened and as JSON;
 * otherwise as fuzz_dump_reader.c. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "debug_info/demangled_name.h"
#include "output/frame_name.h"
#include "base/json.h"
#include "base/printable.h"
#include "output/short_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_printable(const char *text)
{
	for (const unsigned char *s = (const unsigned char *)text; *s;) {
		size_t n = printable_sequence(s);
		if (!n || !printable_is_shown(s, n))
			abort();
		s += n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char clean[4096], cut[4096];
	static struct json json;
	char *name = strndup((const char *)data, size);
	char *plain = name ? demangled_name(name) : NULL;
	FILE *null = fopen("/dev/null", "we");

	if (!plain || !null ||
	    strlen(plain) > (strlen(name) < DEMANGLED_MAX_BYTES ? DEMANGLED_MAX_BYTES : strlen(name)))
		abort();
	size_t columns = printable_copy(plain, clean, sizeof clean);
	check_printable(clean);
	short_name(clean, 50, cut, sizeof cut);
	if (short_name_cut(cut, 50) > 50 || columns > sizeof clean)
		abort();
	struct name_text buffer = { 0 };
	const char *name_of_frame = frame_name_clean(&buffer, plain);
	if (!name_of_frame)
		abort();
	check_printable(name_of_frame);
	frame_name_done(&buffer);
	json = (struct json){ .out = null };
	json_string(&json, NULL, plain);
	fclose(null);
	free(plain);
	free(name);
	return 0;
}
