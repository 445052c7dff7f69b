/* SPDX-License-Identifier: MIT */
/* Closes what a child process shall not inherit. */
#pragma once

#include <stddef.h>

/* Closes all descriptors but these, which it sorts; what is -1 is none. Works on kernels without close_range(2), too.
 */
void close_all_but(int *keep, size_t count);
