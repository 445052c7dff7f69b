/* SPDX-License-Identifier: MIT */
/* Whose allocator is it? By the texts that it carries: every version of it has its messages. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/allocator_internal.h"
#include "base/cleanup.h"
#include "arch/instruction.h"

#define PIECE_BYTES (1u << 20)
#define OVERLAP_BYTES 128u
#define DATA_MAX (64ull << 20) /* of constant data that is read */

struct texts {
	const struct known_allocator *known;
	char jemalloc[64]; /* version */
	char gperftools[32];
};

static bool is_printable_to(const uint8_t *from, size_t bytes, const char *set, size_t *length)
{
	for (*length = 0; *length < bytes && from[*length] && strchr(set, from[*length]);)
		++*length;
	return *length > 0;
}

/* "5.3.0-0-g54eaed1d8b56b1aa528be3bdd1877e59c56fa90c" at end: behind its last digit stands a NUL. */
static void note_jemalloc(struct texts *t, const uint8_t *piece, size_t g, size_t bytes)
{
	size_t hash, start = g;

	if (t->jemalloc[0] || !is_printable_to(piece + g + 2, bytes - g - 2, "0123456789abcdef", &hash) || hash != 40)
		return;
	while (start > 0 && (isdigit(piece[start - 1]) || strchr(".-", piece[start - 1])) && piece[start - 1])
		start--;
	size_t version = strcspn((const char *)piece + start, "-");
	if (start < g && isdigit(piece[start]) && version < sizeof t->jemalloc && start + version <= g) {
		memcpy(t->jemalloc, piece + start, version);
		t->jemalloc[version] = 0;
	}
}

static void note_gperftools(struct texts *t, const uint8_t *piece, size_t bytes)
{
	static const char head[] = "gperftools ";
	const uint8_t *at = memmem(piece, bytes, head, sizeof head - 1);
	size_t length;

	if (!at || t->gperftools[0])
		return;
	at += sizeof head - 1;
	if (is_printable_to(at, (size_t)(piece + bytes - at), "0123456789.", &length) &&
	    length < sizeof t->gperftools) {
		memcpy(t->gperftools, at, length);
		t->gperftools[length] = 0;
	}
}

static void search_piece(struct texts *t, const uint8_t *piece, size_t bytes)
{
	if (!t->known)
		t->known = known_allocator_in_text(piece, bytes);
	note_gperftools(t, piece, bytes);
	for (const uint8_t *at = piece; at && at < piece + bytes - 2;) {
		at = memmem(at, (size_t)(piece + bytes - at), "-g", 2);
		if (at)
			note_jemalloc(t, piece, (size_t)(at - piece), bytes);
		at = at ? at + 1 : NULL;
	}
}

static int search_segment(struct texts *t, const struct module_view *v, uint64_t start, uint64_t bytes, struct err *e)
{
	AUTO_FREE uint8_t *piece = malloc(PIECE_BYTES + OVERLAP_BYTES + 1);

	if (!piece)
		return err_set(e, ENOMEM, "no memory to read constant data");
	for (uint64_t done = 0; done < bytes;) {
		uint64_t part = bytes - done < PIECE_BYTES + OVERLAP_BYTES ? bytes - done : PIECE_BYTES + OVERLAP_BYTES;
		int r = module_file_read(&v->file, start + done, piece, part, e);

		if (r)
			return r == -EFAULT ? 0 : r;
		piece[part] = 0;
		search_piece(t, piece, part);
		done += part > PIECE_BYTES ? PIECE_BYTES : part;
	}
	return 0;
}

/* Constant data: segments that are neither written nor, where there are such, executed. */
static int search_texts(struct texts *t, const struct module_view *v, struct err *e)
{
	const struct elf_module *m = v->file.module;
	uint64_t left = DATA_MAX;
	bool plain = false;

	*t = (struct texts){ 0 };
	for (size_t i = 0; i < m->phdr_count; i++)
		plain |= m->phdrs[i].p_type == PT_LOAD && !(m->phdrs[i].p_flags & (PF_W | PF_X));
	for (size_t i = 0; i < m->phdr_count; i++) {
		const Elf64_Phdr *p = &m->phdrs[i];
		uint64_t bytes = p->p_filesz < left ? p->p_filesz : left;

		if (p->p_type != PT_LOAD || p->p_flags & (plain ? PF_W | PF_X : PF_W))
			continue;
		int r = search_segment(t, v, m->bias + p->p_vaddr, bytes, e);
		if (r)
			return r;
		left -= bytes;
	}
	return 0;
}

int allocator_identify_by_text(struct finder *f, const struct module_view *v, const struct known_allocator **known,
                               struct err *e)
{
	struct texts t;
	int r = search_texts(&t, v, e);

	(void)f;
	*known = r ? NULL : t.known;
	return r;
}

/* mi_version returns a number that is in its first instruction: 209. */
static bool mimalloc_version(const struct finder *f, const struct module_view *v, char *version, size_t size)
{
	struct instruction in;
	struct elf_symbol s;
	uint8_t code[16];

	if (!elf_module_find(v->file.module, "mi_version", NULL, &s) || !s.function || s.ifunc ||
	    target_read(&f->memory, s.address, code, sizeof code, ERR_IGNORED) ||
	    !instruction_read(&in, code, sizeof code, s.address))
		return false;
	unsigned skip = in.landing_pad ? in.bytes : 0;
	if (skip && !instruction_read(&in, code + skip, sizeof code - skip, s.address + skip))
		return false;
	if (!in.has_immediate || in.immediate < 100 || in.immediate > 999)
		return false;
	unsigned n = (unsigned)in.immediate;
	snprintf(version, size, "%u.%u.%u", n / 100, n / 10 % 10, n % 10);
	return true;
}

int allocator_identify(struct finder *f, const struct module_view *v, struct allocator *a, struct err *e)
{
	const struct libc *libc = f->in->libc;
	struct texts t;

	if (v->file.module == libc->module && a->family == FAMILY_PLAIN) {
		snprintf(a->name, sizeof a->name, "%s", libc->kind == LIBC_GLIBC ? "glibc" : "musl");
		snprintf(a->version, sizeof a->version, "%s", libc->version);
		return 0;
	}
	int r = search_texts(&t, v, e);
	if (r)
		return r;
	const enum allocator_family family = a->family == FAMILY_PLAIN && t.known ? t.known->family : a->family;
	const char *name = a->family == FAMILY_RUST               ? "a Rust allocator of its own"
	                   : a->family == FAMILY_PLAIN && t.known ? t.known->name
	                   : a->family == FAMILY_PLAIN            ? "an allocator of its own"
	                                                          : allocator_family_name(a->family);
	snprintf(a->name, sizeof a->name, "%s", name);
	if (family == FAMILY_JEMALLOC)
		snprintf(a->version, sizeof a->version, "%s", t.jemalloc);
	else if (family == FAMILY_TCMALLOC && t.gperftools[0])
		snprintf(a->version, sizeof a->version, "of gperftools %s", t.gperftools);
	else if (family == FAMILY_MIMALLOC)
		(void)mimalloc_version(f, v, a->version, sizeof a->version);
	return 0;
}
