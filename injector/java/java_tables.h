/* SPDX-License-Identifier: MIT */
/*
 * The tables by which HotSpot describes its own structures, for its serviceability agent: exported arrays of entries
 * gHotSpotVMStructs (fields), gHotSpotVMTypes (sizes), gHotSpotVMIntConstants, beside each of which libjvm exports how
 * long an entry is and where its parts are. They are read from the process, entry by entry, each text within a limit.
 */
#pragma once

#include "elf/elf_module.h"

struct java_entry {
	char name[88];  /* "nmethod::_method", "PcDesc", "Method::_hidden" */
	char type[40];  /* of a field, as C++ has it; "" not known */
	uint64_t value; /* of a field: its offset, or its address if it is static; of a type: its size */
	bool is_static;
};

struct java_table {
	struct java_entry *list;
	size_t count;
};

struct java_tables {
	struct java_table fields, types, constants;
};

/* -ENOEXEC: the module does not export them. tm: with a budget. java_tables_free afterwards. */
int java_tables_read(struct java_tables *t, const struct elf_module *m, const struct target_memory *tm,
                     struct err *e) WARN_UNUSED;
void java_tables_free(struct java_tables *t);

/* The entry that has that name, or NULL. */
const struct java_entry *java_table_find(const struct java_table *t, const char *name);
