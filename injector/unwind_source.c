/* SPDX-License-Identifier: MIT */
/*
 * Where a module keeps its call frame information. All addresses here are link-time ones: what a file holds
 * is not relocated, and pc-relative pointers do not care.
 */
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "cfi_program.h"
#include "cleanup.h"
#include "stack_switch.h"
#include "unwind_cache.h"
#include "unwind_compile.h"

#define EH_FRAME_MAX (1ull << 30)

/* The address of .eh_frame, from PT_GNU_EH_FRAME; 0 if there is none. */
static uint64_t eh_frame_address(const struct module_file *f)
{
	const struct elf_table *hdr = &f->module->eh_frame_hdr;
	uint8_t head[12];
	struct err ignored;

	if (hdr->bytes < sizeof head || module_file_read(f, hdr->address, head, sizeof head, &ignored) ||
	    head[0] != 1)
		return 0;
	struct cfi_reader r = { head + 4, head + sizeof head, false };
	uint64_t address = cfi_pointer(&r, head[1], hdr->address + 4);
	/* An absolute pointer in a file is a link-time address. */
	if ((head[1] & 0xf0) == 0 && !elf_module_holds(f->module, address, 4, 0))
		address += f->module->bias;
	return r.bad ? 0 : address;
}

/* From .eh_frame to the end of its segment; a terminator in the section ends it earlier. */
static bool read_eh_frame(const struct module_file *f, uint8_t **data, size_t *bytes, uint64_t *address)
{
	const struct elf_module *m = f->module;
	uint64_t start = eh_frame_address(f);
	struct err ignored;

	for (size_t i = 0; start && i < m->phdr_count; i++) {
		const Elf64_Phdr *p = &m->phdrs[i];
		uint64_t at = start - (m->bias + p->p_vaddr);

		if (p->p_type != PT_LOAD || at >= p->p_filesz || p->p_filesz - at > EH_FRAME_MAX)
			continue;
		AUTO_FREE uint8_t *read = malloc(p->p_filesz - at);
		if (!read || module_file_read(f, start, read, p->p_filesz - at, &ignored))
			return false;
		*data = steal_pointer(&read);
		*bytes = p->p_filesz - at;
		*address = start;
		return true;
	}
	return false;
}

static int compile_and_mark(struct unwind_rows *rows, const struct module_file *f, const struct unwind_source *source,
                            struct err *e)
{
	int r = unwind_compile(rows, source, e);

	if (!r && (r = stack_switch_mark(rows, f, e)))
		unwind_rows_done(rows);
	return r;
}

static int compile_bytes(struct unwind_rows *rows, const struct module_file *f, const uint8_t *data, size_t bytes,
                         uint64_t address, bool debug_frame, struct unwind_cache *cache, struct err *e)
{
	const struct elf_module *m = f->module;
	struct unwind_source source = {
		.data = data,
		.bytes = bytes,
		.address = address - m->bias,
		.debug_frame = debug_frame,
		.exec_start = m->exec_start - m->bias,
		.exec_end = m->exec_end - m->bias,
	};

	if (!cache)
		return compile_and_mark(rows, f, &source, e);
	const struct unwind_cache_key key = unwind_cache_key(m, &source);
	if (unwind_cache_load(cache, &key, rows))
		return 0;
	int r = compile_and_mark(rows, f, &source, e);
	if (!r)
		unwind_cache_store(cache, &key, rows);
	return r;
}

int unwind_compile_module(struct unwind_rows *rows, const struct module_file *f, struct unwind_cache *cache,
                          struct err *e)
{
	AUTO_FREE uint8_t *data = NULL;
	struct unwind_rows out = { 0 };
	size_t bytes;
	uint64_t address;
	struct err ignored;
	int r = 0;

	if (read_eh_frame(f, &data, &bytes, &address) ||
	    !module_file_section(f, ".eh_frame", &data, &bytes, &address, &ignored))
		r = compile_bytes(&out, f, data, bytes, address, false, cache, e);
	if (!r && out.count == 0) {
		free(data);
		data = NULL;
		if (!module_file_section(f, ".debug_frame", &data, &bytes, &address, &ignored))
			r = compile_bytes(&out, f, data, bytes, f->module->bias, true, cache, e);
	}
	if (!r)
		*rows = out;
	return r;
}
