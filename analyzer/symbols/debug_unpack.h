/* SPDX-License-Identifier: MIT */
/*
 * Debug files are usually compressed, section by section. libdw inflates all of them as soon as it is asked for
 * anything, with zlib, one after the other, and also those that nobody here reads; a short report would take nearly
 * twice as long. So it is given a copy in memory, in which only what source_lines needs is left, inflated by two
 * threads.
 *
 * The copy gives the same answers as the file, or there is none: of a file that is damaged, is not compressed, is not
 * of 64 bits, or refers to others by the place where it lies, which a copy does not have.
 */
#ifndef MEMATTACH_DEBUG_UNPACK_H
#define MEMATTACH_DEBUG_UNPACK_H

/* A descriptor of the copy, or -1. fd stays open. */
int debug_unpack(int fd);

#endif
