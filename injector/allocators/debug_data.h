/* SPDX-License-Identifier: MIT */
/*
 * .gnu_debugdata: an ELF file with the names of functions, packed by xz, as Fedora and its kin put it into stripped
 * programs. It is unpacked in a child process that has no privileges and limits of its own (common/sandbox/rights.h),
 * because the bytes are the target's and the code that reads them is a library's.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "host/budget.h"

/* A file in memory with what packed[bytes] holds; -1: it cannot be unpacked, is more than 64 MiB, the budget (may be
 * NULL) has no time left for children, or memattach was asked to end. */
int debug_data_unpack(const uint8_t *packed, size_t bytes, struct budget *budget);
