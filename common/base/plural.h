/* SPDX-License-Identifier: MIT */
/* What a noun has behind it where there are so many: "1 block", "2 blocks". */
#pragma once

#include <stdint.h>

static inline const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}
