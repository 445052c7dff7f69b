/* SPDX-License-Identifier: MIT */
/*
 * All names of functions in a module that can be had: its dynamic symbols, and the first that there is of .symtab in
 * the mapped file, a debug file below /usr/lib/debug/.build-id that has the module's build-id, and .gnu_debugdata.
 */
#pragma once

#include "elf/module_file.h"

enum names_source {
	NAMES_DYNAMIC, /* only what is exported */
	NAMES_SYMTAB,
	NAMES_DEBUG_FILE,
	NAMES_DEBUG_DATA,
};

/* Calls fn for each function (STT_FUNC) that lies in an executable segment, perhaps twice, until it returns false. */
enum names_source module_names_each(const struct module_file *f, module_symbol_fn fn, void *context);
