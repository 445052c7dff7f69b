/* SPDX-License-Identifier: MIT */
/* Between elf_module.c and elf_symbols.c. */
#pragma once

#include "elf/elf_module.h"

#define ELF_VERSIONS_MAX 4096u /* more version definitions or needs are taken for damage */

/* How many bytes follow address in its segment; 0 if it is in none. */
uint64_t elf_module_room_behind(const struct elf_module *m, uint64_t address);

/*
 * Copies the symbols and their versions, after the dynamic section and the strings were read. A damaged table
 * gives fewer symbols or none. -ENOMEM; -EFAULT, -ESRCH from reading.
 */
int elf_module_read_symbols(struct elf_module *m, const struct target_memory *tm, struct err *e) WARN_UNUSED;
