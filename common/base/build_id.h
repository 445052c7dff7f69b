/* SPDX-License-Identifier: MIT */
/* Build-ids as text, which names files of debug information and of the cache. Not for the payload. */
#pragma once

#include <stdint.h>

#include "dump_format.h"

#define BUILD_ID_TEXT (2 * DUMP_BUILD_ID_MAX + 1)

/* Two digits for each of at most DUMP_BUILD_ID_MAX bytes; "" for none. */
static inline void build_id_format(const uint8_t *id, uint32_t bytes, char text[BUILD_ID_TEXT])
{
	static const char digits[] = "0123456789abcdef";

	for (uint32_t i = 0; i < bytes; i++) {
		text[2 * i] = digits[id[i] >> 4];
		text[2 * i + 1] = digits[id[i] & 15];
	}
	text[2 * bytes] = 0;
}
