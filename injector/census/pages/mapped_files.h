/* SPDX-License-Identifier: MIT */
/*
 * Pages of mapped files that are not in the target's memory, read from the files themselves: constants, and data that
 * nobody has written to. Only regular files that the target has mapped are opened (target_file.h).
 */
#pragma once

#include <stdbool.h>

#include "maps/maps.h"
#include "process/target.h"

#define MAPPED_FILES_MAX 64u /* that are open at a time */

struct mapped_files {
	pid_t pid;
	const struct maps *maps;
	struct {
		const struct mapping *mapping;
		int fd; /* -1: it cannot be opened */
	} files[MAPPED_FILES_MAX];
	size_t count, next;
};

void mapped_files_open(struct mapped_files *f, const struct target *t, const struct maps *maps);
void mapped_files_close(struct mapped_files *f);
/* A page as the file has it. False: the mapping has no file, or it ends before. */
bool mapped_files_read(struct mapped_files *f, uint64_t page, void *buffer, size_t bytes);
