/* SPDX-License-Identifier: MIT */
/*
 * /tmp/perf-PID.map: the code that a process has made itself, as lines "START SIZE name" with hexadecimal numbers. The
 * file is written by the process and may hold anything: a line that makes no sense is passed over.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define PERF_MAP_BYTES_MAX (64u << 20) /* what is beyond is not read */

struct perf_symbol {
	uint64_t start, end;
	uint32_t line; /* the later line is the newer code */
	const char *name;
};

/* Starts as zero. */
struct perf_map {
	char *text;
	struct perf_symbol *list; /* by start, then by line */
	size_t count;
};

/* 0, -ENOMEM, or -errno of a read. */
int perf_map_read(struct perf_map *map, int fd) WARN_UNUSED;
void perf_map_done(struct perf_map *map);
/* The name of the code at an address, NULL if there is none. Of several that cover it, that which begins last. */
const char *perf_map_find(const struct perf_map *map, uint64_t address);
