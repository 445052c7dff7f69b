/* SPDX-License-Identifier: MIT */
/*
 * A cave: unused bytes after the end of an executable segment, in its last page, where a stub can be without mapping
 * anything. The bytes are zero in memory now; behind them may be others, by which a program waits at its entry
 * (start_image.h). Modules that stay for the life of the process (the loader, the C library, the program) come first.
 * The vdso comes last: a static program is one module, whose last page of code may be full.
 */
#pragma once

#include "elf/modules.h"

struct cave {
	uint64_t address; /* multiple of 16 */
	uint64_t bytes;   /* zeros from there on, in its page */
	const struct elf_module *module;
};

/*
 * The best cave of at least bytes: -ENOSPC if there is none. Other modules of the base namespace are taken
 * only after those three.
 */
int cave_find(struct cave *cave, const struct modules *m, const struct target_memory *tm, const struct maps *maps,
              uint64_t bytes, struct err *e) WARN_UNUSED;

/*
 * The caves of one module: where its padding is, whether zero or not (a stub of an earlier session may be
 * there). False: none.
 */
bool cave_of_module(struct cave *cave, const struct elf_module *module, const struct target_memory *tm,
                    const struct maps *maps);
