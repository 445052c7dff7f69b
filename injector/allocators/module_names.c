/* SPDX-License-Identifier: MIT */
#include "allocators/module_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "allocators/debug_data.h"
#include "files/regular_file.h"

#define DEBUG_DIRECTORY "/usr/lib/debug/.build-id"
#define NOTE_HEAD_BYTES 16u /* three words and "GNU" */

struct filter {
	const struct module_file *f;
	module_symbol_fn fn;
	void *context;
};

static bool on_symbol(void *context, const char *name, uint64_t address, uint64_t bytes, unsigned type)
{
	const struct filter *p = context;

	if (type != STT_FUNC || !elf_module_holds(p->f->module, address, bytes ? bytes : 1, PF_X))
		return true;
	return p->fn(p->context, name, address, bytes, type);
}

static void each_dynamic(const struct elf_module *m, struct filter *p)
{
	for (size_t i = 0; i < m->symbol_count; i++) {
		const Elf64_Sym *s = &m->symbols[i];

		if (s->st_shndx != SHN_UNDEF && s->st_shndx != SHN_ABS &&
		    !on_symbol(p, elf_module_symbol_name(m, (uint32_t)i), m->bias + s->st_value, s->st_size,
		               ELF64_ST_TYPE(s->st_info)))
			return;
	}
}

/* The symbols of another file for the same module. */
static bool each_in(int fd, struct filter *p)
{
	struct module_file other = *p->f;

	other.fd = fd;
	return module_file_symbols(&other, on_symbol, p);
}

/* A debug file under the right name may still be another one's. */
static bool has_build_id(int fd, const struct module_file *f)
{
	struct module_file other = *f;
	AUTO_FREE uint8_t *note = NULL;
	size_t bytes;

	other.fd = fd;
	return module_file_raw_section(&other, ".note.gnu.build-id", &note, &bytes) &&
	       bytes >= NOTE_HEAD_BYTES + f->module->build_id_bytes &&
	       !memcmp(note + NOTE_HEAD_BYTES, f->module->build_id, f->module->build_id_bytes);
}

static bool each_in_debug_file(struct filter *p)
{
	const struct elf_module *m = p->f->module;
	char hex[2 * BUILD_ID_MAX + 1] = "", path[sizeof DEBUG_DIRECTORY + sizeof hex + 16];

	for (uint32_t i = 0; i < m->build_id_bytes; i++)
		snprintf(hex + 2 * (size_t)i, 3, "%02x", m->build_id[i]);
	if (m->build_id_bytes < 2)
		return false;
	snprintf(path, sizeof path, DEBUG_DIRECTORY "/%.2s/%s.debug", hex, hex + 2);
	AUTO_CLOSE int fd = regular_file_open(path, ERR_IGNORED);
	return fd >= 0 && has_build_id(fd, p->f) && each_in(fd, p);
}

static bool each_in_debug_data(struct filter *p)
{
	AUTO_FREE uint8_t *packed = NULL;
	size_t bytes;

	if (!module_file_raw_section(p->f, ".gnu_debugdata", &packed, &bytes))
		return false;
	AUTO_CLOSE int fd = debug_data_unpack(packed, bytes, p->f->tm->budget);
	return fd >= 0 && each_in(fd, p);
}

enum names_source module_names_each(const struct module_file *f, module_symbol_fn fn, void *context)
{
	struct filter p = { f, fn, context };

	each_dynamic(f->module, &p);
	if (module_file_symbols(f, on_symbol, &p))
		return NAMES_SYMTAB;
	if (each_in_debug_file(&p))
		return NAMES_DEBUG_FILE;
	return each_in_debug_data(&p) ? NAMES_DEBUG_DATA : NAMES_DYNAMIC;
}
