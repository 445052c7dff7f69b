/* SPDX-License-Identifier: MIT */
/*
 * Changes a dump as somebody would who knows the format: fields of its header, regions, records, names and texts get
 * values at which readers go wrong (limits of types and of the file, references to other records, NaN, texts that are
 * markup), records take the place of others, regions lie above each other, the end is missing. Any bytes will do: what
 * is found to be no place of a record is not written to, and what is written lies within size.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* One to eight changes, which seed alone decides. The new size: no larger than size. */
size_t dump_mutate(unsigned char *bytes, size_t size, uint64_t seed);
