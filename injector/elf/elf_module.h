/* SPDX-License-Identifier: MIT */
/*
 * One ELF image in the target: program headers, dynamic section and dynamic symbols, read from the target's
 * memory. These parts are in loaded segments by the ABI, so no file is needed and a replaced or deleted file
 * cannot mislead.
 *
 * Nothing in the image is trusted: every count, offset and pointer is checked against the loaded segments and
 * against fixed limits, so a damaged or malicious image gives an error or fewer symbols, never a crash.
 *
 * All addresses are absolute addresses in the target, 0 for absent, whatever form the loader left in the
 * dynamic section (glibc relocates d_ptr in place, musl and the vdso do not).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/elf_machine.h"
#include "base/err.h"
#include "maps/maps.h"
#include "process/target_read.h"

#define BUILD_ID_MAX 32u

struct elf_table {
	uint64_t address;
	uint64_t bytes;
};

struct elf_module {
	/* Identity. */
	uint32_t id;  /* given by the session, as of struct dump_module; 0 until modules_number() */
	char *path;   /* of the mapped file as in maps; else the loader's name; "[vdso]" */
	char *soname; /* DT_SONAME or "" */
	uint8_t build_id[BUILD_ID_MAX];
	uint32_t build_id_bytes; /* 0: none */
	uint64_t inode;          /* of the mapped file, 0 none */
	uint32_t dev_major;
	uint32_t dev_minor;
	bool deleted; /* the file is gone from its path */
	bool is_main;
	bool is_loader; /* the program interpreter (ld.so; on musl also the libc) */
	bool is_vdso;
	uint32_t namespace_id; /* link-map namespace: 0 the base one */
	uint64_t link_map;     /* address of struct link_map, 0: not on a list */

	/* Layout. */
	uint64_t bias;       /* address = bias + p_vaddr */
	uint64_t header;     /* address of the ELF header */
	uint64_t start;      /* lowest PT_LOAD address, rounded down to a page */
	uint64_t end;        /* after the highest, rounded up */
	uint64_t exec_start; /* segments with PF_X taken together; 0, 0 if none. Exact, not rounded */
	uint64_t exec_end;
	uint64_t relro_start; /* PT_GNU_RELRO, 0, 0 if none; the loader protects whole pages inside */
	uint64_t relro_end;
	Elf64_Phdr *phdrs;
	size_t phdr_count;
	struct elf_table eh_frame_hdr; /* PT_GNU_EH_FRAME */
	uint16_t type;                 /* ET_EXEC or ET_DYN */

	/* Dynamic section. */
	uint64_t dynamic;
	uint64_t dynamic_bytes; /* as the program headers have it; loaders go on to DT_NULL */
	struct elf_table symtab, strtab, jmprel, rela;
	uint64_t hash, gnu_hash, versym, verdef, verneed;
	uint32_t verdef_count, verneed_count;
	uint64_t pltgot;
	uint64_t debug; /* value of DT_DEBUG: struct r_debug */
	bool has_debug;
	bool symbolic; /* DT_SYMBOLIC or DF_SYMBOLIC */

	/* Copies of the symbol tables. */
	Elf64_Sym *symbols;
	size_t symbol_count;
	char *strings; /* strings[strings_bytes] is NUL */
	size_t strings_bytes;
	uint16_t *versions;         /* symbol_count entries, or NULL: no versions */
	const char **version_names; /* by version index, NULL where unknown */
	size_t version_name_count;
	uint32_t *needed; /* offsets into strings of DT_NEEDED names */
	size_t needed_count;
	uint32_t *buckets; /* index of defined names: heads, then next links (symbol numbers) */
	uint32_t *chain;
	uint32_t bucket_mask;
};

/* A defined dynamic symbol. */
struct elf_symbol {
	uint64_t address; /* for an ifunc: of the resolver, which must not be called from outside */
	uint64_t bytes;   /* st_size, may be 0 */
	bool ifunc;
	bool function;   /* STT_FUNC or STT_GNU_IFUNC */
	uint32_t number; /* in the table */
};

/*
 * Reads the image whose ELF header is at header. dynamic is the address of its dynamic section if known (then
 * checked), else 0; bias is computed. path may be NULL. elf_module_done afterwards. -ENOEXEC: not a usable
 * 64-bit image of this machine (the text says which: 32-bit, x32, other machine, damaged); -EFAULT, -ESRCH from
 * reading.
 */
int elf_module_read(struct elf_module *m, const struct target_memory *tm, const struct maps *maps, uint64_t header,
                    uint64_t dynamic, const char *path, struct err *e) WARN_UNUSED;
void elf_module_done(struct elf_module *m);

/* Is this the header of a 64-bit program of this machine or shared object? -ENOEXEC with the reason. */
int elf_header_check(const Elf64_Ehdr *header, struct err *e) WARN_UNUSED;

/* Is address in one of its PT_LOAD segments (with these PF_ flags set)? */
bool elf_module_holds(const struct elf_module *m, uint64_t address, uint64_t bytes, uint32_t flags);

/*
 * Finds a defined symbol by name. version NULL: the default version, else an unversioned one, else any. With
 * a version: that version, hidden or not, or an unversioned definition in a module without versions. False:
 * not defined here. A symbol that is undefined but has a value (canonical PLT stub of a non-PIE program) is
 * not found.
 */
bool elf_module_find(const struct elf_module *m, const char *name, const char *version, struct elf_symbol *symbol);

/* Does it define name, in any version, at this address (function, not ifunc)? */
bool elf_module_defines_at(const struct elf_module *m, const char *name, uint64_t address, struct elf_symbol *symbol);

/* Does it define name as an ifunc in any version? */
bool elf_module_defines_ifunc(const struct elf_module *m, const char *name);

/* Symbol number n: its name ("" if out of range), required or defined version name or NULL. */
const char *elf_module_symbol_name(const struct elf_module *m, uint32_t n);
const char *elf_module_symbol_version(const struct elf_module *m, uint32_t n);

/* The string at an offset of the string table if it ends within max_bytes, else NULL. */
const char *elf_module_string(const struct elf_module *m, uint64_t offset, size_t max_bytes);

/* "libc.so.6": last component of the path, for messages. Never NULL. */
const char *elf_module_name(const struct elf_module *m);

/* Reads a relocation table of the module. *relas is malloc'ed (NULL if empty). */
int elf_module_relocations(const struct elf_module *m, const struct target_memory *tm, const struct elf_table *table,
                           Elf64_Rela **relas, size_t *count, struct err *e) WARN_UNUSED;
