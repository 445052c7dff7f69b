/* SPDX-License-Identifier: MIT */
#include "elf/module_file.h"

#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "maps/target_file.h"
#include "host/watchdog.h"
#include "files/whole_io.h"

/* A file written over in place would not have the program headers that were loaded. */
static bool same_headers(int fd, const struct elf_module *m)
{
	Elf64_Ehdr h;

	if (!whole_io_pread(fd, &h, sizeof h, 0) || elf_header_check(&h, ERR_IGNORED) || h.e_phnum != m->phdr_count)
		return false;
	AUTO_FREE Elf64_Phdr *phdrs = calloc(h.e_phnum, sizeof *phdrs);
	return phdrs && whole_io_pread(fd, phdrs, h.e_phnum * sizeof *phdrs, h.e_phoff) &&
	       !memcmp(phdrs, m->phdrs, h.e_phnum * sizeof *phdrs);
}

void module_file_open(struct module_file *f, const struct elf_module *module, const struct target_memory *tm,
                      const struct maps *maps)
{
	const struct mapping *map = maps_find(maps, module->header);
	AUTO_CLOSE int fd = module->is_vdso || !map ? -1
	                                            : target_file_open(target_memory_thread(tm), map, module->path);

	*f = (struct module_file){ .module = module, .tm = tm, .fd = -1 };
	if (fd >= 0 && same_headers(fd, module))
		f->fd = cleanup_steal_fd(&fd);
}

void module_file_close(struct module_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

int module_file_read(const struct module_file *f, uint64_t address, void *buffer, size_t bytes, struct err *e)
{
	const struct elf_module *m = f->module;
	int r = f->fd >= 0 ? budget_work(f->tm->budget, bytes, e) : 0;

	if (r)
		return r;
	for (size_t i = 0; i < m->phdr_count && f->fd >= 0; i++) {
		const Elf64_Phdr *p = &m->phdrs[i];
		uint64_t at = address - (m->bias + p->p_vaddr);

		if (p->p_type != PT_LOAD || p->p_flags & PF_W || at >= p->p_filesz || bytes > p->p_filesz - at)
			continue;
		watchdog_call_begin();
		bool read = p->p_offset <= INT64_MAX - at && whole_io_pread(f->fd, buffer, bytes, p->p_offset + at);
		watchdog_call_end();
		if (read)
			return 0;
	}
	return target_read(f->tm, address, buffer, bytes, e);
}

#define CODE_PIECE (1u << 20)

struct code_reader {
	const struct module_file *file;
	size_t overlap;
	module_code_fn fn;
	void *context;
	uint8_t *piece;
	bool missed;
};

/* One executable segment. */
static int read_code(struct code_reader *r, uint64_t start, uint64_t end)
{
	int rc = 0;

	for (uint64_t at = start; at < end && rc == 0; at += CODE_PIECE - r->overlap) {
		size_t bytes = end - at < CODE_PIECE ? end - at : CODE_PIECE;
		if (module_file_read(r->file, at, r->piece, bytes, ERR_IGNORED) == 0)
			rc = r->fn(r->context, r->piece, bytes, at);
		else
			r->missed = true;
	}
	return rc;
}

int module_file_code(const struct module_file *f, size_t overlap, module_code_fn fn, void *context, struct err *e)
{
	const struct elf_module *m = f->module;
	AUTO_FREE uint8_t *piece = malloc(CODE_PIECE);
	struct code_reader r = { f, overlap, fn, context, piece, false };
	int rc = 0;

	if (!piece)
		return err_set(e, ENOMEM, "no memory for the code of a module");
	for (size_t i = 0; i < m->phdr_count && rc == 0; i++) {
		const Elf64_Phdr *p = &m->phdrs[i];
		uint64_t start = m->bias + p->p_vaddr, end = start + p->p_filesz;

		if (p->p_type == PT_LOAD && p->p_flags & PF_X && start >= m->exec_start && end <= m->exec_end)
			rc = read_code(&r, start, end);
	}
	return rc == 0 && r.missed ? err_set(e, EIO, "code of %s cannot be read", elf_module_name(m)) : rc;
}

/* The section's contents, decompressed; belongs to elf. */
static Elf_Data *section_data(Elf_Scn *section, const GElf_Shdr *header)
{
	if (header->sh_type == SHT_NOBITS)
		return NULL;
	if (header->sh_flags & SHF_COMPRESSED && elf_compress(section, 0, 0) < 0)
		return NULL;
	return elf_rawdata(section, NULL);
}

int module_file_section(const struct module_file *f, const char *name, uint8_t **data, size_t *bytes, uint64_t *address,
                        struct err *e)
{
	int r = err_set(e, ENOENT, "%s has no section %s", elf_module_name(f->module), name);
	size_t names;

	elf_version(EV_CURRENT);
	Elf *elf = f->fd >= 0 ? elf_begin(f->fd, ELF_C_READ, NULL) : NULL;
	if (!elf)
		return r;
	Elf_Scn *section = elf_getshdrstrndx(elf, &names) ? NULL : elf_nextscn(elf, NULL);
	for (; section; section = elf_nextscn(elf, section)) {
		GElf_Shdr header;
		const char *this = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
		Elf_Data *d = this && !strcmp(this, name) ? section_data(section, &header) : NULL;

		if (!d || !d->d_buf || d->d_size == 0)
			continue;
		uint8_t *copy = malloc(d->d_size);
		if (!copy) {
			r = err_set(e, ENOMEM, "no memory for section %s", name);
			break;
		}
		memcpy(copy, d->d_buf, d->d_size);
		*data = copy;
		*bytes = d->d_size;
		*address = header.sh_flags & SHF_ALLOC ? f->module->bias + header.sh_addr : 0;
		r = 0;
		break;
	}
	elf_end(elf);
	return r;
}

/* ---- .symtab ---- */

#define SECTIONS_MAX 65279u /* SHN_LORESERVE - 1 */
#define PART_MAX (1ull << 30)

/*
 * A part of the file, with a NUL after; NULL: not all of it is there, or it is too much. By hand and not by libelf,
 * which would take what the headers promise: this runs in memattach itself.
 */
static void *read_part(const struct module_file *f, uint64_t offset, uint64_t bytes)
{
	if (bytes > PART_MAX || budget_work(f->tm->budget, bytes, ERR_IGNORED) < 0 ||
	    (f->tm->budget && bytes > f->tm->budget->memory / 2))
		return NULL;
	AUTO_FREE char *data = malloc(bytes + 1);
	if (!data || !whole_io_pread(f->fd, data, bytes, offset))
		return NULL;
	data[bytes] = 0;
	return cleanup_steal_pointer(&data);
}

struct symtab {
	Elf64_Sym *symbols;
	size_t count;
	char *strings; /* NUL after */
	uint64_t strings_bytes;
};

static void symtab_done(struct symtab *t)
{
	free(t->symbols);
	free(t->strings);
}

/* Missing parts are NULL. */
static bool symtab_read(struct symtab *t, const struct module_file *f, const Elf64_Shdr *sections, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const Elf64_Shdr *s = &sections[i], *names = s->sh_link < count ? &sections[s->sh_link] : NULL;

		if (s->sh_type != SHT_SYMTAB || s->sh_entsize != sizeof *t->symbols || !names ||
		    (s->sh_flags | names->sh_flags) & SHF_COMPRESSED)
			continue;
		t->count = s->sh_size / sizeof *t->symbols;
		t->strings_bytes = names->sh_size;
		t->symbols = read_part(f, s->sh_offset, t->count * sizeof *t->symbols);
		t->strings = t->symbols ? read_part(f, names->sh_offset, t->strings_bytes) : NULL;
		return t->strings;
	}
	return false;
}

static void each_symbol(const struct module_file *f, const struct symtab *t, module_symbol_fn fn, void *context)
{
	for (size_t i = 1; i < t->count; i++) {
		const Elf64_Sym *s = &t->symbols[i];

		if (s->st_shndx != SHN_UNDEF && s->st_value && s->st_name < t->strings_bytes &&
		    !fn(context, t->strings + s->st_name, f->module->bias + s->st_value, s->st_size,
		        ELF64_ST_TYPE(s->st_info)))
			return;
	}
}

/* The section headers, NULL if there are none. */
static Elf64_Shdr *read_sections(const struct module_file *f, Elf64_Ehdr *h)
{
	if (f->fd < 0 || !whole_io_pread(f->fd, h, sizeof *h, 0) || h->e_shentsize != sizeof(Elf64_Shdr) ||
	    h->e_shnum > SECTIONS_MAX)
		return NULL;
	return read_part(f, h->e_shoff, h->e_shnum * sizeof(Elf64_Shdr));
}

/* The header of the section, copied from the headers; false: there is none. */
static bool find_section(const struct module_file *f, const char *name, Elf64_Shdr *found)
{
	Elf64_Ehdr h;
	AUTO_FREE Elf64_Shdr *sections = read_sections(f, &h);

	if (!sections || h.e_shstrndx >= h.e_shnum)
		return false;
	uint64_t names_bytes = sections[h.e_shstrndx].sh_size;
	AUTO_FREE char *names = read_part(f, sections[h.e_shstrndx].sh_offset, names_bytes);
	for (size_t i = 1; names && i < h.e_shnum; i++) {
		const Elf64_Shdr *s = &sections[i];

		if (s->sh_name >= names_bytes || strcmp(names + s->sh_name, name) || s->sh_type == SHT_NOBITS ||
		    s->sh_flags & SHF_COMPRESSED || s->sh_size == 0)
			continue;
		*found = *s;
		return true;
	}
	return false;
}

bool module_file_raw_section(const struct module_file *f, const char *name, uint8_t **data, size_t *bytes)
{
	Elf64_Shdr s;

	if (!find_section(f, name, &s))
		return false;
	*data = read_part(f, s.sh_offset, s.sh_size);
	*bytes = s.sh_size;
	return *data;
}

bool module_file_section_place(const struct module_file *f, const char *name, uint64_t *address, uint64_t *bytes)
{
	Elf64_Shdr s;

	if (!find_section(f, name, &s) || !(s.sh_flags & SHF_ALLOC) ||
	    !elf_module_holds(f->module, f->module->bias + s.sh_addr, s.sh_size, 0))
		return false;
	*address = f->module->bias + s.sh_addr;
	*bytes = s.sh_size;
	return true;
}

bool module_file_symbols(const struct module_file *f, module_symbol_fn fn, void *context)
{
	struct symtab t = { 0 };
	Elf64_Ehdr h;

	AUTO_FREE Elf64_Shdr *sections = read_sections(f, &h);
	bool found = sections && symtab_read(&t, f, sections, h.e_shnum);
	if (found)
		each_symbol(f, &t, fn, context);
	symtab_done(&t);
	return found;
}
