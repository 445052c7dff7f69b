/* SPDX-License-Identifier: MIT */
/* What memattach reads and writes of another process it counts in pages of 4 KiB: page maps, padding, code. */
#pragma once

#include "base/err.h"

/* -ENOTSUP: this kernel has others. */
int page_size_check(struct err *e) WARN_UNUSED;
