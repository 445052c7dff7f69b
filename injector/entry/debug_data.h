/* SPDX-License-Identifier: MIT */
/*
 * .gnu_debugdata: an ELF file with the names of functions, packed by xz, as Fedora and its kin put it into stripped
 * programs. It is unpacked in a child process that has no privileges and limits of its own (privileges.h), because the
 * bytes are the target's and the code that reads them is a library's.
 */
#ifndef MEMATTACH_DEBUG_DATA_H
#define MEMATTACH_DEBUG_DATA_H

#include <stddef.h>
#include <stdint.h>

/* A file in memory with what packed[bytes] holds; -1: it cannot be unpacked, or is more than 64 MiB. */
int debug_data_unpack(const uint8_t *packed, size_t bytes);

#endif
