/* SPDX-License-Identifier: MIT */
/*
 * Finds and opens the perf-PID.map of a target. Its user decides what is at that name: a link, or, in a mount namespace
 * of his own, any file mounted there, /proc/N/mem of another process for one. So memanalyze opens it with the rights of
 * that user alone (rights_lend in common/sandbox/rights.h), and reads only a regular file of his or of root's that lies
 * in /tmp itself and is not older than the process.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "symbol_request.h"

struct perf_map_file {
	int root;  /* the root directory of the target */
	pid_t pid; /* as the target knows itself */
	uid_t uid;
	uint64_t started_realtime_ns; /* when the target began, about */
};

/* A descriptor; -1: there is none, or *refused says why it is not read. */
int perf_map_file_open(const struct perf_map_file *file, enum symbol_map *refused);
