/* SPDX-License-Identifier: MIT */
/* Closes what a child process shall not inherit. */
#ifndef MEMATTACH_CLOSE_ALL_BUT_H
#define MEMATTACH_CLOSE_ALL_BUT_H

#include <stddef.h>

/* Closes all descriptors but these. keep: sorted, ascending. Works on kernels without close_range(2), too. */
void close_all_but(const int *keep, size_t count);

#endif
