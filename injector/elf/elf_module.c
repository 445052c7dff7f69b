/* SPDX-License-Identifier: MIT */
#include "elf/elf_module.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "elf/elf_module_internal.h"
#include "maps/target_file.h"

/* Limits beyond which an image is taken for damaged. The largest real tables are about a tenth. */
#define PHDR_MAX 256u
#define DYNAMIC_MAX 4096u
#define STRINGS_MAX (1u << 30)
#define RELOCATIONS_MAX (8u << 20)
#define NAME_MAX_BYTES 4096u /* of a module or its file */
#define NOTE_MAX 65536u

#define PAGE 4096u

bool elf_module_holds(const struct elf_module *m, uint64_t address, uint64_t bytes, uint32_t flags)
{
	for (size_t i = 0; i < m->phdr_count; i++) {
		const Elf64_Phdr *p = &m->phdrs[i];
		uint64_t start = m->bias + p->p_vaddr;

		if (p->p_type == PT_LOAD && (p->p_flags & flags) == flags && address >= start &&
		    address - start < p->p_memsz && bytes <= p->p_memsz - (address - start))
			return true;
	}
	return false;
}

uint64_t elf_module_room_behind(const struct elf_module *m, uint64_t address)
{
	for (size_t i = 0; i < m->phdr_count; i++) {
		const Elf64_Phdr *p = &m->phdrs[i];
		uint64_t start = m->bias + p->p_vaddr;

		if (p->p_type == PT_LOAD && address >= start && address - start < p->p_memsz)
			return p->p_memsz - (address - start);
	}
	return 0;
}

/* ---- headers ---- */

int elf_header_check(const Elf64_Ehdr *h, struct err *e)
{
	if (memcmp(h->e_ident, ELFMAG, SELFMAG))
		return err_set(e, ENOEXEC, "no ELF header");
	/* e_machine is at the same place in both classes. */
	if (h->e_ident[EI_CLASS] == ELFCLASS32 && h->e_machine == MACHINE_ELF)
		return err_set(e, ENOEXEC,
		               "it is an x32 program; only 64-bit " MACHINE_NAME " programs can be profiled");
	if (h->e_ident[EI_CLASS] == ELFCLASS32)
		return err_set(e, ENOEXEC,
		               "it is a 32-bit program; only 64-bit " MACHINE_NAME " programs can be profiled");
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_machine != MACHINE_ELF)
		return err_set(e, ENOEXEC, "it is not an " MACHINE_NAME " image (machine %u)", h->e_machine);
	if (h->e_type != ET_DYN && h->e_type != ET_EXEC)
		return err_set(e, ENOEXEC, "it is neither a program nor a shared object (type %u)", h->e_type);
	if (h->e_phentsize != sizeof(Elf64_Phdr) || h->e_phnum == 0 || h->e_phnum > PHDR_MAX)
		return err_set(e, ENOEXEC, "its program headers make no sense");
	return 0;
}

static void note_exec(struct elf_module *m, uint64_t start, uint64_t end)
{
	if (m->exec_end == 0 || start < m->exec_start)
		m->exec_start = start;
	if (end > m->exec_end)
		m->exec_end = end;
}

/* Derives bias, extent and the special segments from the program headers. */
static int read_layout(struct elf_module *m, struct err *e)
{
	const Elf64_Phdr *first = NULL;
	uint64_t low = UINT64_MAX, high = 0;

	for (size_t i = 0; i < m->phdr_count; i++) {
		const Elf64_Phdr *p = &m->phdrs[i];
		if (p->p_type != PT_LOAD)
			continue;
		if (p->p_memsz > INT64_MAX || p->p_vaddr > INT64_MAX || p->p_filesz > p->p_memsz)
			return err_set(e, ENOEXEC, "a segment of it makes no sense");
		if (!first && p->p_offset < PAGE)
			first = p;
		if (p->p_vaddr < low)
			low = p->p_vaddr;
		if (p->p_vaddr + p->p_memsz > high)
			high = p->p_vaddr + p->p_memsz;
	}
	if (!first || high <= low)
		return err_set(e, ENOEXEC, "its header is not in a loaded segment");
	m->bias = m->header - (first->p_vaddr - first->p_offset);
	m->start = (m->bias + low) & ~(uint64_t)(PAGE - 1);
	m->end = (m->bias + high + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	if (m->start >= m->end || m->bias + high < m->bias + low || m->end - m->start > 1ull << 40)
		return err_set(e, ENOEXEC, "its segments wrap around");
	for (size_t i = 0; i < m->phdr_count; i++) {
		const Elf64_Phdr *p = &m->phdrs[i];
		uint64_t start = m->bias + p->p_vaddr;

		if (p->p_type == PT_LOAD && p->p_flags & PF_X && p->p_memsz)
			note_exec(m, start, start + p->p_memsz);
		else if (p->p_type == PT_GNU_RELRO && elf_module_holds(m, start, p->p_memsz, 0)) {
			m->relro_start = start;
			m->relro_end = start + p->p_memsz;
		} else if (p->p_type == PT_GNU_EH_FRAME && elf_module_holds(m, start, p->p_memsz, 0))
			m->eh_frame_hdr = (struct elf_table){ start, p->p_memsz };
		else if (p->p_type == PT_DYNAMIC && elf_module_holds(m, start, sizeof(Elf64_Dyn), 0))
			m->dynamic = start, m->dynamic_bytes = p->p_memsz;
	}
	return 0;
}

static int read_headers(struct elf_module *m, const struct target_memory *tm, struct err *e)
{
	Elf64_Ehdr h;
	int r = target_read(tm, m->header, &h, sizeof h, e);

	r = r ?: elf_header_check(&h, e);
	if (r)
		return r;
	if (h.e_phoff > 1u << 20)
		return err_set(e, ENOEXEC, "its program headers make no sense");
	r = budget_take(tm->budget, sizeof *m + h.e_phnum * sizeof *m->phdrs, e);
	if (r)
		return r;
	m->type = h.e_type;
	m->phdr_count = h.e_phnum;
	m->phdrs = calloc(h.e_phnum, sizeof *m->phdrs);
	if (!m->phdrs)
		return err_set(e, ENOMEM, "no memory for program headers");
	r = target_read(tm, m->header + h.e_phoff, m->phdrs, h.e_phnum * sizeof *m->phdrs, e);
	return r ?: read_layout(m, e);
}

/* ---- build-id ---- */

static void scan_notes(struct elf_module *m, const uint8_t *notes, uint64_t bytes, uint64_t align)
{
	for (uint64_t at = 0; bytes - at >= sizeof(Elf64_Nhdr);) {
		Elf64_Nhdr n;

		memcpy(&n, notes + at, sizeof n);
		uint64_t name = at + sizeof n;
		uint64_t desc = name + ((n.n_namesz + align - 1) & ~(align - 1));
		uint64_t next = desc + ((n.n_descsz + align - 1) & ~(align - 1));
		if (desc > bytes || n.n_descsz > bytes - desc)
			return;
		if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && !memcmp(notes + name, "GNU", 4) &&
		    n.n_descsz > 0 && n.n_descsz <= BUILD_ID_MAX) {
			memcpy(m->build_id, notes + desc, n.n_descsz);
			m->build_id_bytes = n.n_descsz;
			return;
		}
		if (next > bytes)
			return;
		at = next;
	}
}

static void read_build_id(struct elf_module *m, const struct target_memory *tm)
{
	for (size_t i = 0; i < m->phdr_count && m->build_id_bytes == 0; i++) {
		const Elf64_Phdr *p = &m->phdrs[i];

		if (p->p_type != PT_NOTE || p->p_memsz == 0 || p->p_memsz > NOTE_MAX ||
		    !elf_module_holds(m, m->bias + p->p_vaddr, p->p_memsz, 0))
			continue;
		AUTO_FREE uint8_t *notes = malloc(p->p_memsz);
		if (notes && !target_read(tm, m->bias + p->p_vaddr, notes, p->p_memsz, ERR_IGNORED))
			scan_notes(m, notes, p->p_memsz, p->p_align == 8 ? 8 : 4);
	}
}

/* ---- dynamic section ---- */

/* glibc has relocated d_ptr in place, musl and the vdso have not: whichever lies in the module. */
static uint64_t normalise(const struct elf_module *m, uint64_t pointer, uint64_t bytes)
{
	if (elf_module_holds(m, m->bias + pointer, bytes, 0))
		return m->bias + pointer;
	return elf_module_holds(m, pointer, bytes, 0) ? pointer : 0;
}

/* An address inside, or 0. */
static uint64_t place(const struct elf_module *m, const uint64_t *d, int tag)
{
	return d[tag] ? normalise(m, d[tag], 1) : 0;
}

static struct elf_table table(const struct elf_module *m, uint64_t pointer, uint64_t bytes)
{
	uint64_t address = pointer && bytes ? normalise(m, pointer, bytes) : 0;

	return (struct elf_table){ address, address ? bytes : 0 };
}

const char *elf_module_string(const struct elf_module *m, uint64_t offset, size_t max_bytes)
{
	uint64_t room = offset < m->strings_bytes ? m->strings_bytes - offset + 1 : 0;

	return room && memchr(m->strings + offset, 0, room < max_bytes ? room : max_bytes) ? m->strings + offset : NULL;
}

/* The offsets of the names of what it needs, which are among the entries. */
static int keep_needed(struct elf_module *m, const struct target_memory *tm, const Elf64_Dyn *list, size_t count,
                       struct err *e)
{
	size_t needed = 0;

	for (size_t i = 0; i < count && list[i].d_tag != DT_NULL; i++)
		needed += list[i].d_tag == DT_NEEDED;
	int r = needed ? budget_take(tm->budget, needed * sizeof *m->needed, e) : 0;
	if (r || !needed)
		return r;
	m->needed = calloc(needed, sizeof *m->needed);
	if (!m->needed)
		return err_set(e, ENOMEM, "no memory for a dynamic section");
	for (size_t i = 0; i < count && list[i].d_tag != DT_NULL; i++)
		if (list[i].d_tag == DT_NEEDED)
			m->needed[m->needed_count++] = list[i].d_un.d_val < STRINGS_MAX ? (uint32_t)list[i].d_un.d_val
			                                                                : UINT32_MAX;
	return 0;
}

static int read_strings(struct elf_module *m, const struct target_memory *tm, struct err *e)
{
	if (m->strtab.bytes == 0 || m->strtab.bytes > STRINGS_MAX)
		return 0;
	int r = budget_take(tm->budget, m->strtab.bytes, e);
	if (r)
		return r;
	m->strings = malloc(m->strtab.bytes + 1);
	if (!m->strings)
		return err_set(e, ENOMEM, "no memory for symbol names");
	r = target_read(tm, m->strtab.address, m->strings, m->strtab.bytes, e);
	if (r)
		return r;
	m->strings_bytes = m->strtab.bytes;
	m->strings[m->strings_bytes] = 0;
	return 0;
}

#define TAG_MAX 64

static int read_dynamic(struct elf_module *m, const struct target_memory *tm, struct err *e)
{
	uint64_t d[TAG_MAX] = { 0 }, soname = UINT64_MAX;
	uint64_t gnu_hash = 0, versym = 0, verdef = 0, verneed = 0, verdef_count = 0, verneed_count = 0;
	uint64_t room = m->dynamic ? elf_module_room_behind(m, m->dynamic) / sizeof(Elf64_Dyn) : 0;
	size_t count = room > DYNAMIC_MAX ? DYNAMIC_MAX : (size_t)room;

	if (count == 0)
		return 0;
	AUTO_FREE Elf64_Dyn *list = calloc(count, sizeof *list);
	if (!list)
		return err_set(e, ENOMEM, "no memory for a dynamic section");
	int r = target_read(tm, m->dynamic, list, count * sizeof *list, e);
	/* A payload of ours whose memattach died while it was being mapped has no memory yet where its .bss will be. */
	if (r && m->dynamic_bytes / sizeof *list < count)
		r = target_read(tm, m->dynamic, list, m->dynamic_bytes / sizeof *list * sizeof *list, e);
	r = r ?: keep_needed(m, tm, list, count, e);
	if (r)
		return r;
	for (size_t i = 0; i < count && list[i].d_tag != DT_NULL; i++) {
		uint64_t v = list[i].d_un.d_val;

		switch (list[i].d_tag) {
		case DT_SONAME: soname = v; break;
		case DT_DEBUG:
			m->has_debug = true;
			m->debug = v;
			break;
		case DT_SYMBOLIC: m->symbolic = true; break;
		case DT_FLAGS: m->symbolic |= (v & DF_SYMBOLIC) != 0; break;
		case DT_GNU_HASH: gnu_hash = v; break;
		case DT_VERSYM: versym = v; break;
		case DT_VERDEF: verdef = v; break;
		case DT_VERNEED: verneed = v; break;
		case DT_VERDEFNUM: verdef_count = v; break;
		case DT_VERNEEDNUM: verneed_count = v; break;
		default:
			if (list[i].d_tag > 0 && list[i].d_tag < TAG_MAX)
				d[list[i].d_tag] = v;
		}
	}
	m->strtab = table(m, d[DT_STRTAB], d[DT_STRSZ]);
	m->symtab = (struct elf_table){ place(m, d, DT_SYMTAB), 0 };
	if (d[DT_PLTREL] == DT_RELA)
		m->jmprel = table(m, d[DT_JMPREL], d[DT_PLTRELSZ]);
	if (d[DT_RELAENT] == sizeof(Elf64_Rela))
		m->rela = table(m, d[DT_RELA], d[DT_RELASZ]);
	m->pltgot = place(m, d, DT_PLTGOT);
	m->hash = place(m, d, DT_HASH);
	m->gnu_hash = gnu_hash ? normalise(m, gnu_hash, 16) : 0;
	m->versym = versym ? normalise(m, versym, 2) : 0;
	m->verdef = verdef ? normalise(m, verdef, sizeof(Elf64_Verdef)) : 0;
	m->verneed = verneed ? normalise(m, verneed, sizeof(Elf64_Verneed)) : 0;
	m->verdef_count = verdef_count > ELF_VERSIONS_MAX ? 0 : (uint32_t)verdef_count;
	m->verneed_count = verneed_count > ELF_VERSIONS_MAX ? 0 : (uint32_t)verneed_count;
	r = read_strings(m, tm, e);
	if (!r && elf_module_string(m, soname, NAME_MAX_BYTES))
		m->soname = strdup(m->strings + soname);
	return r;
}

/* ---- the whole ---- */

/*
 * The kernel writes a newline in a name as \012, and a name that has these four characters in the same way. Which one
 * it is tells the link in map_files. False: it cannot be read.
 */
static bool name_of_mapping(const struct target_memory *tm, const struct mapping *map, char *name, size_t size)
{
	char link[TARGET_FILE_LINK];

	target_file_link(tm->pid, map, link);
	ssize_t n = readlink(link, name, size - 1);
	if (n <= 0)
		return false;
	name[n] = 0;
	return true;
}

static void note_file(struct elf_module *m, const struct target_memory *tm, const struct maps *maps, const char *path)
{
	const struct mapping *map = maps_find(maps, m->header);
	char name[NAME_MAX_BYTES + 1];

	if (map && map->path[0])
		path = map->path;
	if (map && map->inode && !map->deleted && strchr(map->path, '\n') &&
	    name_of_mapping(tm, map, name, sizeof name))
		path = name;
	if (map) {
		m->inode = map->inode;
		m->dev_major = map->dev_major;
		m->dev_minor = map->dev_minor;
		m->deleted = map->deleted;
		m->is_vdso = !strcmp(map->path, "[vdso]");
	}
	m->path = strdup(path ? path : "");
	if (!m->soname)
		m->soname = strdup("");
}

int elf_module_read(struct elf_module *m, const struct target_memory *tm, const struct maps *maps, uint64_t header,
                    uint64_t dynamic, const char *path, struct err *e)
{
	struct elf_module out = { .header = header };
	int r = read_headers(&out, tm, e);

	if (!r && dynamic && out.dynamic != dynamic)
		r = err_set(e, ENOEXEC, "the image at 0x%" PRIx64 " has no dynamic section at 0x%" PRIx64, header,
		            dynamic);
	r = r ?: read_dynamic(&out, tm, e);
	r = r ?: elf_module_read_symbols(&out, tm, e);
	if (!r) {
		read_build_id(&out, tm);
		note_file(&out, tm, maps, path);
		if (!out.path || !out.soname)
			r = err_set(e, ENOMEM, "no memory for a path");
		else
			r = budget_take(tm->budget, strlen(out.path) + strlen(out.soname), e);
	}
	r = r ?: budget_check(tm->budget, e);
	if (r) {
		elf_module_done(&out);
		return r;
	}
	*m = out;
	return 0;
}

void elf_module_done(struct elf_module *m)
{
	free(m->path);
	free(m->soname);
	free(m->phdrs);
	free(m->symbols);
	free(m->strings);
	free(m->versions);
	free(m->version_names);
	free(m->needed);
	free(m->buckets);
	free(m->chain);
	*m = (struct elf_module){ 0 };
}

const char *elf_module_name(const struct elf_module *m)
{
	const char *slash = m->path ? strrchr(m->path, '/') : NULL;

	if (slash && slash[1])
		return slash + 1;
	return m->path && m->path[0] ? m->path : m->soname && m->soname[0] ? m->soname : "unnamed module";
}

int elf_module_relocations(const struct elf_module *m, const struct target_memory *tm, const struct elf_table *table_,
                           Elf64_Rela **relas, size_t *count, struct err *e)
{
	size_t n = table_->bytes / sizeof(Elf64_Rela);

	if (n == 0) {
		*relas = NULL;
		*count = 0;
		return 0;
	}
	if (n > RELOCATIONS_MAX || !elf_module_holds(m, table_->address, n * sizeof(Elf64_Rela), 0))
		return err_set(e, ENOEXEC, "a relocation table makes no sense");
	int r = budget_fits(tm->budget, n * sizeof(Elf64_Rela), e);
	if (r)
		return r;
	Elf64_Rela *list = calloc(n, sizeof *list);
	if (!list)
		return err_set(e, ENOMEM, "no memory for relocations");
	r = target_read(tm, table_->address, list, n * sizeof *list, e);
	if (r) {
		free(list);
		return r;
	}
	*relas = list;
	*count = n;
	return 0;
}
