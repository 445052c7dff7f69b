/* SPDX-License-Identifier: MIT */
#include "module_file.h"

#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "cleanup.h"
#include "watchdog.h"
#include "whole_io.h"

/* A file written over in place would not have the program headers that were loaded. */
static bool same_headers(int fd, const struct elf_module *m)
{
	Elf64_Ehdr h;
	struct err ignored;

	if (!pread_all(fd, &h, sizeof h, 0) || elf_header_check(&h, &ignored) || h.e_phnum != m->phdr_count)
		return false;
	AUTO_FREE Elf64_Phdr *phdrs = calloc(h.e_phnum, sizeof *phdrs);
	return phdrs && pread_all(fd, phdrs, h.e_phnum * sizeof *phdrs, h.e_phoff) &&
	       !memcmp(phdrs, m->phdrs, h.e_phnum * sizeof *phdrs);
}

/* Does the file carry the build-id of the module, in a note where the module has it? */
static bool same_build_id(int fd, const struct elf_module *m)
{
	for (size_t i = 0; i < m->phdr_count && m->build_id_bytes; i++) {
		const Elf64_Phdr *p = &m->phdrs[i];

		if (p->p_type != PT_NOTE || p->p_filesz < m->build_id_bytes || p->p_filesz > 65536)
			continue;
		AUTO_FREE uint8_t *notes = malloc(p->p_filesz);
		if (notes && pread_all(fd, notes, p->p_filesz, p->p_offset) &&
		    memmem(notes, p->p_filesz, m->build_id, m->build_id_bytes))
			return true;
	}
	return false;
}

static int open_mapped(const struct elf_module *m, const struct target_memory *tm, const struct maps *maps)
{
	const struct mapping *map = maps_find(maps, m->header);
	char path[96];

	if (!map || !map->inode)
		return -1;
	snprintf(path, sizeof path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)target_memory_thread(tm), map->start, map->end);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd >= 0 && same_headers(fd, m) ? steal_fd(&fd) : -1;
}

static int open_named(const struct elf_module *m, const struct target_memory *tm)
{
	struct stat st;
	char path[4200];

	if (m->path[0] != '/' || m->deleted)
		return -1;
	int n = snprintf(path, sizeof path, "/proc/%d/root%s", (int)target_memory_thread(tm), m->path);
	if (n < 0 || (size_t)n >= sizeof path)
		return -1;
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || !same_headers(fd, m))
		return -1;
	/*
	 * Some file systems (overlay, btrfs) show another device in stat than in maps: there the build-id
	 * decides.
	 */
	bool same_inode = st.st_ino == m->inode && major(st.st_dev) == m->dev_major &&
	                  minor(st.st_dev) == m->dev_minor;
	return same_inode || same_build_id(fd, m) ? steal_fd(&fd) : -1;
}

void module_file_open(struct module_file *f, const struct elf_module *module, const struct target_memory *tm,
                      const struct maps *maps)
{
	f->module = module;
	f->tm = tm;
	f->fd = module->is_vdso ? -1 : open_mapped(module, tm, maps);
	if (f->fd < 0 && !module->is_vdso)
		f->fd = open_named(module, tm);
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

	for (size_t i = 0; i < m->phdr_count && f->fd >= 0; i++) {
		const Elf64_Phdr *p = &m->phdrs[i];
		uint64_t at = address - (m->bias + p->p_vaddr);

		if (p->p_type != PT_LOAD || p->p_flags & PF_W || at >= p->p_filesz || bytes > p->p_filesz - at)
			continue;
		watchdog_call_begin();
		bool read = p->p_offset <= INT64_MAX - at && pread_all(f->fd, buffer, bytes, p->p_offset + at);
		watchdog_call_end();
		if (read)
			return 0;
	}
	return target_read(f->tm, address, buffer, bytes, e);
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

int module_file_section(const struct module_file *f, const char *name, uint8_t **data, size_t *bytes,
                        uint64_t *address, struct err *e)
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

static void each_symbol(const struct module_file *f, Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
                        module_symbol_fn fn, void *context)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t count = data && header->sh_entsize == sizeof(Elf64_Sym) ? data->d_size / sizeof(Elf64_Sym) : 0;

	for (size_t i = 1; i < count && i < INT32_MAX; i++) {
		GElf_Sym s;

		if (!gelf_getsym(data, (int)i, &s) || s.st_shndx == SHN_UNDEF || s.st_value == 0)
			continue;
		const char *name = elf_strptr(elf, header->sh_link, s.st_name);
		if (name && !fn(context, name, f->module->bias + s.st_value, s.st_size, GELF_ST_TYPE(s.st_info)))
			return;
	}
}

bool module_file_symbols(const struct module_file *f, module_symbol_fn fn, void *context)
{
	bool found = false;

	elf_version(EV_CURRENT);
	Elf *elf = f->fd >= 0 ? elf_begin(f->fd, ELF_C_READ, NULL) : NULL;
	if (!elf)
		return false;
	for (Elf_Scn *section = elf_nextscn(elf, NULL); section && !found; section = elf_nextscn(elf, section)) {
		GElf_Shdr header;

		found = gelf_getshdr(section, &header) && header.sh_type == SHT_SYMTAB;
		if (found)
			each_symbol(f, elf, section, &header, fn, context);
	}
	elf_end(elf);
	return found;
}
