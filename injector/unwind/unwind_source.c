/* SPDX-License-Identifier: MIT */
/*
 * Where a module keeps its call frame information. All addresses here are link-time ones: what a file holds
 * is not relocated, and pc-relative pointers do not care.
 */
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "arch/signal_frame.h"
#include "base/cleanup.h"
#include "unwind/stack_base.h"
#include "unwind/switch_rows.h"
#include "unwind/frame_header.h"
#include "unwind/unwind_cache.h"
#include "unwind/unwind_compile.h"

#define EH_FRAME_MAX (1ull << 30)

/* The address of .eh_frame; 0 if there is none. An absolute pointer in a file is a link-time address. */
static uint64_t eh_frame_address(const struct module_file *f)
{
	struct frame_header h;

	if (!frame_header_read(&h, f) || !h.frames)
		return 0;
	return elf_module_holds(f->module, h.frames, 4, 0) ? h.frames : h.frames + f->module->bias;
}

/* From .eh_frame to the end of its segment; a terminator in the section ends it earlier. */
void unwind_input_read(struct unwind_input *in, const struct module_file *f)
{
	const struct elf_module *m = f->module;
	uint64_t start = eh_frame_address(f);

	*in = (struct unwind_input){ .file = f };
	for (size_t i = 0; start && i < m->phdr_count; i++) {
		const Elf64_Phdr *p = &m->phdrs[i];
		uint64_t at = start - (m->bias + p->p_vaddr);

		if (p->p_type != PT_LOAD || at >= p->p_filesz || p->p_filesz - at > EH_FRAME_MAX)
			continue;
		if (f->tm->budget && p->p_filesz - at > f->tm->budget->memory)
			return;
		AUTO_FREE uint8_t *read = malloc(p->p_filesz - at);
		if (!read || module_file_read(f, start, read, p->p_filesz - at, ERR_IGNORED))
			return;
		in->data = cleanup_steal_pointer(&read);
		in->bytes = p->p_filesz - at;
		in->address = start;
		return;
	}
}

void unwind_input_done(struct unwind_input *in)
{
	free(in->data);
	*in = (struct unwind_input){ 0 };
}

static struct unwind_source source_of(const struct elf_module *m, const uint8_t *data, size_t bytes, uint64_t address,
                                      bool debug_frame)
{
	return (struct unwind_source){
		.data = data,
		.bytes = bytes,
		.address = address - m->bias,
		.debug_frame = debug_frame,
		.exec_start = m->exec_start - m->bias,
		.exec_end = m->exec_end - m->bias,
	};
}

bool unwind_input_key(const struct unwind_input *in, struct cache_key *key)
{
	if (!in->data)
		return false;
	const struct unwind_source source = source_of(in->file->module, in->data, in->bytes, in->address, false);
	return unwind_cache_key(key, in->file, &source);
}

static int compile_and_mark(struct unwind_rows *rows, const struct module_file *f, const struct unwind_source *source,
                            struct err *e)
{
	int r = unwind_compile(rows, source, e);

	if (r)
		return r;
	r = switch_rows_mark(rows, f, e);
	r = r ?: stack_base_mark(rows, f->module, e);
	if (r)
		unwind_rows_done(rows);
	return r;
}

/* What a section by this name holds; nothing if there is none. */
static int compile_section(struct unwind_rows *rows, const struct module_file *f, const char *name, bool debug_frame,
                           struct err *e)
{
	AUTO_FREE uint8_t *data = NULL;
	size_t bytes;
	uint64_t address;

	if (module_file_section(f, name, &data, &bytes, &address, ERR_IGNORED) < 0)
		return 0;
	const struct unwind_source source =
		source_of(f->module, data, bytes, debug_frame ? f->module->bias : address, debug_frame);
	return compile_and_mark(rows, f, &source, e);
}

/*
 * The kernel's code that signal handlers return to may have no information, and is recognized by its instructions: rows
 * for that alone.
 */
static int rows_of_vdso(struct unwind_rows *rows, const struct elf_module *m, const struct target_memory *tm,
                        struct err *e)
{
	uint64_t at = m->exec_start;

	while (at < m->exec_end && !signal_frame_is_return(tm, at))
		at += 4;
	if (at >= m->exec_end)
		return 0;
	const uint32_t pc[] = { 0, (uint32_t)(at - m->exec_start), (uint32_t)(at - m->exec_start) + 8 };
	const uint32_t rule[] = { UNWIND_NONE, UNWIND_SIGNAL, UNWIND_NONE };
	*rows = (struct unwind_rows){ .pc = malloc(sizeof pc), .rule = malloc(sizeof rule), .count = 3, .capacity = 3 };
	if (!rows->pc || !rows->rule) {
		unwind_rows_done(rows);
		return err_set(e, ENOMEM, "no memory for unwind rows");
	}
	memcpy(rows->pc, pc, sizeof pc);
	memcpy(rows->rule, rule, sizeof rule);
	return 0;
}

int unwind_input_compile(struct unwind_rows *rows, struct unwind_input *in, struct err *e)
{
	struct unwind_rows out = { 0 };
	int r;

	if (in->data) {
		const struct unwind_source source =
			source_of(in->file->module, in->data, in->bytes, in->address, false);
		r = compile_and_mark(&out, in->file, &source, e);
	} else {
		r = compile_section(&out, in->file, ".eh_frame", false, e);
		in->by_section = true;
	}
	if (!r && out.count == 0) {
		r = compile_section(&out, in->file, ".debug_frame", true, e);
		in->by_section = true;
	}
	if (!r && out.count == 0 && in->file->module->is_vdso)
		r = rows_of_vdso(&out, in->file->module, in->file->tm, e);
	if (!r)
		*rows = out;
	return r;
}

int unwind_compile_module(struct unwind_rows *rows, const struct module_file *f, struct unwind_cache *cache,
                          struct err *e)
{
	const uint64_t exec_bytes = f->module->exec_end - f->module->exec_start;
	struct unwind_input in;
	struct cache_key key;
	int r = 0;

	unwind_input_read(&in, f);
	bool keyed = cache && unwind_input_key(&in, &key);
	if (!keyed || !unwind_cache_load(cache, &key, exec_bytes, rows)) {
		r = unwind_input_compile(rows, &in, e);
		if (!r && keyed && !in.by_section)
			unwind_cache_store(cache, &key, rows);
	}
	unwind_input_done(&in);
	return r;
}
