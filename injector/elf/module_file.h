/* SPDX-License-Identifier: MIT */
/*
 * Reading the constant parts of a module (text, unwind information, sections that are not loaded), preferably
 * from its file: reading megabytes of text through the target's memory would make them resident there.
 *
 * The file is the mapped one or none (target_file.h), and has the program headers that were loaded. Without a file
 * loaded parts are read from the target's memory and sections are unavailable.
 */
#pragma once

#include "elf/elf_module.h"

struct module_file {
	const struct elf_module *module;
	const struct target_memory *tm;
	int fd; /* -1: none */
};

/* Never fails: without a file, fd is -1. */
void module_file_open(struct module_file *f, const struct elf_module *module, const struct target_memory *tm,
                      const struct maps *maps);
void module_file_close(struct module_file *f);

/*
 * Reads loaded, not writable bytes of the module at an address of the target. Falls back to memory for what
 * the file does not hold. Bytes of writable segments are always read from memory.
 */
int module_file_read(const struct module_file *f, uint64_t address, void *buffer, size_t bytes,
                     struct err *e) WARN_UNUSED;

/*
 * Reads its code, the executable segments, piece by piece; a piece begins with the last `overlap` bytes of the one
 * before. Ends with what fn returns if that is not 0. -errno: a piece cannot be read, which fn is not called for; the
 * others are read.
 */
typedef int (*module_code_fn)(void *context, const uint8_t *code, size_t bytes, uint64_t address);
int module_file_code(const struct module_file *f, size_t overlap, module_code_fn fn, void *context,
                     struct err *e) WARN_UNUSED;

/*
 * Reads a section by name from the file, decompressed. *data is malloc'ed. *address is sh_addr + bias if it
 * is allocated, else 0. -ENOENT: no file or no such section.
 */
int module_file_section(const struct module_file *f, const char *name, uint8_t **data, size_t *bytes, uint64_t *address,
                        struct err *e) WARN_UNUSED;

/*
 * The same by hand and not by libelf, for memattach itself: as it stands in the file, charged to the budget. *data is
 * malloc'ed. False: no file, no such section, or it is compressed.
 */
bool module_file_raw_section(const struct module_file *f, const char *name, uint8_t **data, size_t *bytes);
/* Where a section is loaded. False: no file, no such section, or it is not in a loaded segment. */
bool module_file_section_place(const struct module_file *f, const char *name, uint64_t *address, uint64_t *bytes);

/* Calls fn for each symbol defined in .symtab, until it returns false. False if there is no .symtab. */
typedef bool (*module_symbol_fn)(void *context, const char *name, uint64_t address, uint64_t bytes, unsigned type);
bool module_file_symbols(const struct module_file *f, module_symbol_fn fn, void *context);
