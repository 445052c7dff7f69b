/* SPDX-License-Identifier: MIT */
/* The dynamic symbols of an image: their number, which no table tells, their versions, an index by name. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/elf_module_internal.h"

/* The largest real tables are about a tenth. */
#define SYMBOL_MAX (16u << 20)
#define NAME_HASHED 24 /* characters of a name */
#define VERSION_NAME_MAX 256u
/* A longer chain of equal hashes ends there: nobody shall make every look-up as long as the table. */
#define CHAIN_MAX 8192u

/* ---- how many ---- */

/* The number of symbols that a DT_GNU_HASH table reaches; 0 if it is damaged. */
static uint64_t count_by_gnu_hash(const struct elf_module *m, const struct target_memory *tm)
{
	struct {
		uint32_t buckets, first, bloom_words, shift;
	} h;

	if (target_read(tm, m->gnu_hash, &h, sizeof h, ERR_IGNORED) || h.buckets == 0 || h.buckets > SYMBOL_MAX ||
	    h.bloom_words > SYMBOL_MAX)
		return 0;
	uint64_t at = m->gnu_hash + sizeof h + h.bloom_words * 8ull;
	if (!elf_module_holds(m, at, h.buckets * 4ull, 0))
		return 0;
	if (budget_fits(tm->budget, h.buckets * 4ull, ERR_IGNORED))
		return 0;
	AUTO_FREE uint32_t *buckets = calloc(h.buckets, sizeof *buckets);
	if (!buckets || target_read(tm, at, buckets, h.buckets * sizeof *buckets, ERR_IGNORED))
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
		uint64_t where = at + (n - h.first) * 4ull, room = elf_module_room_behind(m, where) / 4;
		uint32_t some = room < 64 ? (uint32_t)room : 64;

		if (some == 0 || target_read(tm, where, links, some * 4ull, ERR_IGNORED))
			return 0;
		for (uint32_t i = 0; i < some; i++)
			if (links[i] & 1)
				return (uint64_t)n + i + 1;
		n += some;
	}
	return 0;
}

/* Undefined symbols may be after those that the hash tables reach: relocations name them. */
static uint64_t count_by_relocations(const struct elf_module *m, const struct target_memory *tm,
                                     const struct elf_table *t)
{
	AUTO_FREE Elf64_Rela *relas = NULL;
	size_t count;
	uint64_t most = 0;

	if (elf_module_relocations(m, tm, t, &relas, &count, ERR_IGNORED))
		return 0;
	for (size_t i = 0; i < count; i++)
		if (ELF64_R_SYM(relas[i].r_info) >= most)
			most = ELF64_R_SYM(relas[i].r_info) + 1;
	return most;
}

static uint64_t count_symbols(const struct elf_module *m, const struct target_memory *tm)
{
	uint64_t count = 0;
	uint32_t header[2];

	if (m->hash && !target_read(tm, m->hash, header, sizeof header, ERR_IGNORED))
		return header[1];
	if (m->gnu_hash)
		count = count_by_gnu_hash(m, tm);
	uint64_t more = count_by_relocations(m, tm, &m->jmprel);
	if (more > count)
		count = more;
	more = count_by_relocations(m, tm, &m->rela);
	return more > count ? more : count;
}

/* ---- the table and its index ---- */

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

static int index_symbols(struct elf_module *m, const struct target_memory *tm, struct err *e)
{
	uint32_t size = 16;

	while (size < m->symbol_count)
		size *= 2;
	int r = budget_take(tm->budget, size * sizeof *m->buckets + m->symbol_count * sizeof *m->chain, e);
	if (r)
		return r;
	AUTO_FREE uint16_t *lengths = calloc(size, sizeof *lengths);
	m->bucket_mask = size - 1;
	m->buckets = calloc(size, sizeof *m->buckets);
	m->chain = calloc(m->symbol_count, sizeof *m->chain);
	if (!m->buckets || !m->chain || !lengths)
		return err_set(e, ENOMEM, "no memory for symbols");
	/* From the last to the first, so that chains are in order. Symbol 0 is no symbol and ends a chain. */
	for (size_t i = m->symbol_count - 1; i > 0; i--) {
		if (!is_defined(&m->symbols[i]))
			continue;
		uint32_t b = name_hash(elf_module_symbol_name(m, (uint32_t)i)) & m->bucket_mask;
		if (lengths[b] == CHAIN_MAX)
			continue;
		lengths[b]++;
		m->chain[i] = m->buckets[b];
		m->buckets[b] = (uint32_t)i;
	}
	return 0;
}

static int read_table(struct elf_module *m, const struct target_memory *tm, struct err *e)
{
	uint64_t room = m->symtab.address ? elf_module_room_behind(m, m->symtab.address) / sizeof(Elf64_Sym) : 0;
	uint64_t count = room && m->strings ? count_symbols(m, tm) : 0;

	if (count > room)
		count = room;
	if (count > SYMBOL_MAX)
		count = 0;
	if (count == 0)
		return 0;
	int r = budget_take(tm->budget, count * (sizeof *m->symbols + sizeof *m->versions), e);
	if (r)
		return r;
	m->symbols = calloc(count, sizeof *m->symbols);
	if (!m->symbols)
		return err_set(e, ENOMEM, "no memory for symbols");
	m->symbol_count = count;
	m->symtab.bytes = count * sizeof *m->symbols;
	r = target_read(tm, m->symtab.address, m->symbols, m->symtab.bytes, e);
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
	return index_symbols(m, tm, e);
}

/* ---- versions ---- */

static void name_version(struct elf_module *m, uint32_t index, uint32_t string)
{
	index &= 0x7fff;
	if (index < m->version_name_count)
		m->version_names[index] = elf_module_string(m, string, VERSION_NAME_MAX);
}

static void read_verdefs(struct elf_module *m, const struct target_memory *tm)
{
	uint64_t at = m->verdef;

	for (uint32_t i = 0; i < m->verdef_count; i++) {
		Elf64_Verdef d;
		Elf64_Verdaux a;

		if (!elf_module_holds(m, at, sizeof d, 0) || target_read(tm, at, &d, sizeof d, ERR_IGNORED) ||
		    !elf_module_holds(m, at + d.vd_aux, sizeof a, 0) ||
		    target_read(tm, at + d.vd_aux, &a, sizeof a, ERR_IGNORED))
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

	for (uint32_t i = 0; i < m->verneed_count; i++) {
		Elf64_Verneed n;

		if (!elf_module_holds(m, at, sizeof n, 0) || target_read(tm, at, &n, sizeof n, ERR_IGNORED))
			return;
		uint64_t aux = at + n.vn_aux;
		for (uint32_t k = 0; k < n.vn_cnt && seen < ELF_VERSIONS_MAX; k++, seen++) {
			Elf64_Vernaux a;

			if (!elf_module_holds(m, aux, sizeof a, 0) || target_read(tm, aux, &a, sizeof a, ERR_IGNORED))
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
	int r = budget_take(tm->budget, (most + 1u) * sizeof *m->version_names, e);
	if (r)
		return r;
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

int elf_module_read_symbols(struct elf_module *m, const struct target_memory *tm, struct err *e)
{
	int r = read_table(m, tm, e);

	return r ?: read_versions(m, tm, e);
}

/* ---- look-up ---- */

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

bool elf_module_defines_at(const struct elf_module *m, const char *name, uint64_t address, struct elf_symbol *symbol)
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
