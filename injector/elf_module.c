/* SPDX-License-Identifier: MIT */
#include "elf_module.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

/* Limits beyond which an image is taken for damaged. The largest real tables are about a tenth. */
#define PHDR_MAX 256u
#define DYNAMIC_MAX 4096u
#define SYMBOL_MAX (16u << 20)
#define STRINGS_MAX (1u << 30)
#define RELOCATIONS_MAX (64u << 20)
#define VERSIONS_MAX 4096u
#define NOTE_MAX 65536u
#define NAME_HASHED 24 /* characters of a name */

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

/* How many bytes follow address in its segment; 0 if it is in none. */
static uint64_t room_behind(const struct elf_module *m, uint64_t address)
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
	/* e_machine stands at the same place in both classes. */
	if (h->e_ident[EI_CLASS] == ELFCLASS32 && h->e_machine == EM_X86_64)
		return err_set(e, ENOEXEC, "it is an x32 program; only 64-bit x86-64 programs can be profiled");
	if (h->e_ident[EI_CLASS] == ELFCLASS32)
		return err_set(e, ENOEXEC, "it is a 32-bit program; only 64-bit x86-64 programs can be profiled");
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_machine != EM_X86_64)
		return err_set(e, ENOEXEC, "it is not an x86-64 image (machine %u)", h->e_machine);
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
			m->dynamic = start;
	}
	return 0;
}

static int read_headers(struct elf_module *m, const struct target_memory *tm, struct err *e)
{
	Elf64_Ehdr h;
	int r = target_read(tm, m->header, &h, sizeof h, e);

	if (!r)
		r = elf_header_check(&h, e);
	if (r)
		return r;
	if (h.e_phoff > 1u << 20)
		return err_set(e, ENOEXEC, "its program headers make no sense");
	m->type = h.e_type;
	m->phdr_count = h.e_phnum;
	m->phdrs = calloc(h.e_phnum, sizeof *m->phdrs);
	if (!m->phdrs)
		return err_set(e, ENOMEM, "no memory for program headers");
	r = target_read(tm, m->header + h.e_phoff, m->phdrs, h.e_phnum * sizeof *m->phdrs, e);
	return r ? r : read_layout(m, e);
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
		struct err ignored;

		if (p->p_type != PT_NOTE || p->p_memsz == 0 || p->p_memsz > NOTE_MAX ||
		    !elf_module_holds(m, m->bias + p->p_vaddr, p->p_memsz, 0))
			continue;
		AUTO_FREE uint8_t *notes = malloc(p->p_memsz);
		if (notes && !target_read(tm, m->bias + p->p_vaddr, notes, p->p_memsz, &ignored))
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

#define TAG_MAX 64

static int read_dynamic(struct elf_module *m, const struct target_memory *tm, struct err *e)
{
	uint64_t d[TAG_MAX] = { 0 }, soname = UINT64_MAX;
	uint64_t gnu_hash = 0, versym = 0, verdef = 0, verneed = 0, verdef_count = 0, verneed_count = 0;
	uint64_t room = m->dynamic ? room_behind(m, m->dynamic) / sizeof(Elf64_Dyn) : 0;
	size_t count = room > DYNAMIC_MAX ? DYNAMIC_MAX : (size_t)room;

	if (count == 0)
		return 0;
	AUTO_FREE Elf64_Dyn *list = calloc(count, sizeof *list);
	m->needed = calloc(count, sizeof *m->needed);
	if (!list || !m->needed)
		return err_set(e, ENOMEM, "no memory for a dynamic section");
	int r = target_read(tm, m->dynamic, list, count * sizeof *list, e);
	if (r)
		return r;
	for (size_t i = 0; i < count && list[i].d_tag != DT_NULL; i++) {
		uint64_t v = list[i].d_un.d_val;

		switch (list[i].d_tag) {
		case DT_NEEDED: m->needed[m->needed_count++] = v < STRINGS_MAX ? (uint32_t)v : UINT32_MAX; break;
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
	m->verdef_count = verdef_count > VERSIONS_MAX ? 0 : (uint32_t)verdef_count;
	m->verneed_count = verneed_count > VERSIONS_MAX ? 0 : (uint32_t)verneed_count;
	if (m->strtab.bytes > 0 && m->strtab.bytes <= STRINGS_MAX) {
		m->strings = malloc(m->strtab.bytes + 1);
		if (!m->strings)
			return err_set(e, ENOMEM, "no memory for symbol names");
		r = target_read(tm, m->strtab.address, m->strings, m->strtab.bytes, e);
		if (r)
			return r;
		m->strings_bytes = m->strtab.bytes;
		m->strings[m->strings_bytes] = 0;
	}
	if (soname < m->strings_bytes)
		m->soname = strdup(m->strings + soname);
	return 0;
}

/* ---- symbols ---- */

/* The number of symbols that a DT_GNU_HASH table reaches; 0 if it is damaged. */
static uint64_t count_by_gnu_hash(const struct elf_module *m, const struct target_memory *tm)
{
	struct {
		uint32_t buckets, first, bloom_words, shift;
	} h;
	struct err ignored;

	if (target_read(tm, m->gnu_hash, &h, sizeof h, &ignored) || h.buckets == 0 || h.buckets > SYMBOL_MAX ||
	    h.bloom_words > SYMBOL_MAX)
		return 0;
	uint64_t at = m->gnu_hash + sizeof h + h.bloom_words * 8ull;
	if (!elf_module_holds(m, at, h.buckets * 4ull, 0))
		return 0;
	AUTO_FREE uint32_t *buckets = calloc(h.buckets, sizeof *buckets);
	if (!buckets || target_read(tm, at, buckets, h.buckets * sizeof *buckets, &ignored))
		return 0;
	uint32_t last = 0;
	for (uint32_t i = 0; i < h.buckets; i++)
		if (buckets[i] > last)
			last = buckets[i];
	if (last < h.first)
		return h.first;
	/* The chain of the last bucket ends the table: its last link has bit 0 set. */
	at += h.buckets * 4ull;
	for (uint32_t n = last; n < SYMBOL_MAX;) {
		uint32_t links[64];
		uint64_t where = at + (n - h.first) * 4ull, room = room_behind(m, where) / 4;
		uint32_t some = room < 64 ? (uint32_t)room : 64;

		if (some == 0 || target_read(tm, where, links, some * 4ull, &ignored))
			return 0;
		for (uint32_t i = 0; i < some; i++)
			if (links[i] & 1)
				return (uint64_t)n + i + 1;
		n += some;
	}
	return 0;
}

/* Undefined symbols may stand behind those that the hash tables reach: relocations name them. */
static uint64_t count_by_relocations(const struct elf_module *m, const struct target_memory *tm,
                                     const struct elf_table *t)
{
	AUTO_FREE Elf64_Rela *relas = NULL;
	struct err ignored;
	size_t count;
	uint64_t most = 0;

	if (elf_module_relocations(m, tm, t, &relas, &count, &ignored))
		return 0;
	for (size_t i = 0; i < count; i++)
		if (ELF64_R_SYM(relas[i].r_info) >= most)
			most = ELF64_R_SYM(relas[i].r_info) + 1;
	return most;
}

static uint64_t count_symbols(const struct elf_module *m, const struct target_memory *tm)
{
	struct err ignored;
	uint64_t count = 0;
	uint32_t header[2];

	if (m->hash && !target_read(tm, m->hash, header, sizeof header, &ignored))
		return header[1];
	if (m->gnu_hash)
		count = count_by_gnu_hash(m, tm);
	uint64_t more = count_by_relocations(m, tm, &m->jmprel);
	if (more > count)
		count = more;
	more = count_by_relocations(m, tm, &m->rela);
	return more > count ? more : count;
}

/* What is looked up are short names; going through all of a long C++ name took a third of an attach to node. */
static uint32_t name_hash(const char *name)
{
	uint32_t h = 5381;

	for (int i = 0; i < NAME_HASHED && name[i]; i++)
		h = h * 33 + (uint8_t)name[i];
	return h;
}

static bool is_defined(const Elf64_Sym *s)
{
	unsigned type = ELF64_ST_TYPE(s->st_info), bind = ELF64_ST_BIND(s->st_info);

	return s->st_shndx != SHN_UNDEF && s->st_value != 0 && bind != STB_LOCAL && type != STT_TLS &&
	       type != STT_SECTION && type != STT_FILE;
}

static int index_symbols(struct elf_module *m, struct err *e)
{
	uint32_t size = 16;

	while (size < m->symbol_count)
		size *= 2;
	m->bucket_mask = size - 1;
	m->buckets = calloc(size, sizeof *m->buckets);
	m->chain = calloc(m->symbol_count, sizeof *m->chain);
	if (!m->buckets || !m->chain)
		return err_set(e, ENOMEM, "no memory for symbols");
	/* From the last to the first, so that chains are in order. Symbol 0 is no symbol and ends a chain. */
	for (size_t i = m->symbol_count - 1; i > 0; i--) {
		if (!is_defined(&m->symbols[i]))
			continue;
		uint32_t b = name_hash(elf_module_symbol_name(m, (uint32_t)i)) & m->bucket_mask;
		m->chain[i] = m->buckets[b];
		m->buckets[b] = (uint32_t)i;
	}
	return 0;
}

static int read_symbols(struct elf_module *m, const struct target_memory *tm, struct err *e)
{
	uint64_t room = m->symtab.address ? room_behind(m, m->symtab.address) / sizeof(Elf64_Sym) : 0;
	uint64_t count = room && m->strings ? count_symbols(m, tm) : 0;

	if (count > room)
		count = room;
	if (count > SYMBOL_MAX)
		count = 0;
	if (count == 0)
		return 0;
	m->symbols = calloc(count, sizeof *m->symbols);
	if (!m->symbols)
		return err_set(e, ENOMEM, "no memory for symbols");
	m->symbol_count = count;
	m->symtab.bytes = count * sizeof *m->symbols;
	int r = target_read(tm, m->symtab.address, m->symbols, m->symtab.bytes, e);
	if (r)
		return r;
	if (m->versym && elf_module_holds(m, m->versym, count * 2, 0)) {
		m->versions = calloc(count, sizeof *m->versions);
		if (!m->versions)
			return err_set(e, ENOMEM, "no memory for symbol versions");
		r = target_read(tm, m->versym, m->versions, count * 2, e);
		if (r)
			return r;
	}
	return index_symbols(m, e);
}

/* ---- versions ---- */

static void name_version(struct elf_module *m, uint32_t index, uint32_t string)
{
	index &= 0x7fff;
	if (index < m->version_name_count && string < m->strings_bytes)
		m->version_names[index] = m->strings + string;
}

static void read_verdefs(struct elf_module *m, const struct target_memory *tm)
{
	uint64_t at = m->verdef;
	struct err ignored;

	for (uint32_t i = 0; i < m->verdef_count; i++) {
		Elf64_Verdef d;
		Elf64_Verdaux a;

		if (!elf_module_holds(m, at, sizeof d, 0) || target_read(tm, at, &d, sizeof d, &ignored) ||
		    !elf_module_holds(m, at + d.vd_aux, sizeof a, 0) ||
		    target_read(tm, at + d.vd_aux, &a, sizeof a, &ignored))
			return;
		name_version(m, d.vd_ndx, a.vda_name);
		if (d.vd_next == 0)
			return;
		at += d.vd_next;
	}
}

static void read_verneeds(struct elf_module *m, const struct target_memory *tm)
{
	uint64_t at = m->verneed;
	uint32_t seen = 0;
	struct err ignored;

	for (uint32_t i = 0; i < m->verneed_count; i++) {
		Elf64_Verneed n;

		if (!elf_module_holds(m, at, sizeof n, 0) || target_read(tm, at, &n, sizeof n, &ignored))
			return;
		uint64_t aux = at + n.vn_aux;
		for (uint32_t k = 0; k < n.vn_cnt && seen < VERSIONS_MAX; k++, seen++) {
			Elf64_Vernaux a;

			if (!elf_module_holds(m, aux, sizeof a, 0) || target_read(tm, aux, &a, sizeof a, &ignored))
				return;
			name_version(m, a.vna_other, a.vna_name);
			if (a.vna_next == 0)
				break;
			aux += a.vna_next;
		}
		if (n.vn_next == 0)
			return;
		at += n.vn_next;
	}
}

static int read_versions(struct elf_module *m, const struct target_memory *tm, struct err *e)
{
	uint32_t most = 1;

	if (!m->versions)
		return 0;
	for (size_t i = 0; i < m->symbol_count; i++)
		if ((m->versions[i] & 0x7fffu) > most)
			most = m->versions[i] & 0x7fffu;
	m->version_name_count = most + 1u;
	m->version_names = calloc(m->version_name_count, sizeof *m->version_names);
	if (!m->version_names)
		return err_set(e, ENOMEM, "no memory for symbol versions");
	if (m->verdef)
		read_verdefs(m, tm);
	if (m->verneed)
		read_verneeds(m, tm);
	return 0;
}

/* ---- the whole ---- */

static void note_file(struct elf_module *m, const struct maps *maps, const char *path)
{
	const struct mapping *map = maps_find(maps, m->header);

	if (map && map->path[0])
		path = map->path;
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
	if (!r)
		r = read_dynamic(&out, tm, e);
	if (!r)
		r = read_symbols(&out, tm, e);
	if (!r)
		r = read_versions(&out, tm, e);
	if (!r) {
		read_build_id(&out, tm);
		note_file(&out, maps, path);
		if (!out.path || !out.soname)
			r = err_set(e, ENOMEM, "no memory for a path");
	}
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

const char *elf_module_symbol_name(const struct elf_module *m, uint32_t n)
{
	return n < m->symbol_count && m->symbols[n].st_name < m->strings_bytes ? m->strings + m->symbols[n].st_name
	                                                                       : "";
}

const char *elf_module_symbol_version(const struct elf_module *m, uint32_t n)
{
	uint32_t index = m->versions && n < m->symbol_count ? m->versions[n] & 0x7fffu : 0;

	/* 0 is local, 1 the base version. */
	return index >= 2 && index < m->version_name_count ? m->version_names[index] : NULL;
}

static struct elf_symbol describe(const struct elf_module *m, uint32_t n)
{
	const Elf64_Sym *s = &m->symbols[n];
	unsigned type = ELF64_ST_TYPE(s->st_info);

	return (struct elf_symbol){
		.address = s->st_shndx == SHN_ABS ? s->st_value : m->bias + s->st_value,
		.bytes = s->st_size,
		.ifunc = type == STT_GNU_IFUNC,
		.function = type == STT_FUNC || type == STT_GNU_IFUNC,
		.number = n,
	};
}

/* How well does definition n answer a request for version? 0: not at all. */
static unsigned fitness(const struct elf_module *m, uint32_t n, const char *version)
{
	const char *own = elf_module_symbol_version(m, n);
	bool hidden = m->versions && m->versions[n] & 0x8000u;

	if (version && own)
		return strcmp(own, version) ? 0 : 3;
	if (version)
		return m->verdef ? 1 : 3;
	return own ? (hidden ? 1 : 3) : 2;
}

static bool next_defined(const struct elf_module *m, const char *name, uint32_t *n)
{
	if (!m->buckets)
		return false;
	uint32_t i = *n ? m->chain[*n] : m->buckets[name_hash(name) & m->bucket_mask];

	while (i && strcmp(elf_module_symbol_name(m, i), name))
		i = m->chain[i];
	*n = i;
	return i != 0;
}

bool elf_module_find(const struct elf_module *m, const char *name, const char *version, struct elf_symbol *symbol)
{
	unsigned best = 0;

	for (uint32_t n = 0; next_defined(m, name, &n);) {
		unsigned fit = fitness(m, n, version);
		if (fit > best) {
			best = fit;
			*symbol = describe(m, n);
		}
	}
	return best > 0;
}

bool elf_module_defines_at(const struct elf_module *m, const char *name, uint64_t address,
                           struct elf_symbol *symbol)
{
	for (uint32_t n = 0; next_defined(m, name, &n);) {
		struct elf_symbol s = describe(m, n);
		if (s.address == address && !s.ifunc) {
			*symbol = s;
			return true;
		}
	}
	return false;
}

bool elf_module_defines_ifunc(const struct elf_module *m, const char *name)
{
	for (uint32_t n = 0; next_defined(m, name, &n);)
		if (describe(m, n).ifunc)
			return true;
	return false;
}

int elf_module_relocations(const struct elf_module *m, const struct target_memory *tm,
                           const struct elf_table *table_, Elf64_Rela **relas, size_t *count, struct err *e)
{
	size_t n = table_->bytes / sizeof(Elf64_Rela);

	if (n == 0) {
		*relas = NULL;
		*count = 0;
		return 0;
	}
	if (n > RELOCATIONS_MAX || !elf_module_holds(m, table_->address, n * sizeof(Elf64_Rela), 0))
		return err_set(e, ENOEXEC, "a relocation table makes no sense");
	Elf64_Rela *list = calloc(n, sizeof *list);
	if (!list)
		return err_set(e, ENOMEM, "no memory for relocations");
	int r = target_read(tm, table_->address, list, n * sizeof *list, e);
	if (r) {
		free(list);
		return r;
	}
	*relas = list;
	*count = n;
	return 0;
}
