/* SPDX-License-Identifier: MIT */
#include "debug_unpack.h"

#include <elf.h>
#include <libdeflate.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "cleanup.h"
#include "whole_io.h"

/* No stream of zlib grows more. */
#define RATIO_MAX 1032u
/* Below that a second thread saves less than it takes: 1 MB is inflated in 2 ms. */
#define HELPED_BYTES (1u << 20)
#define HUGE_PAGE ((size_t)2 << 20)

struct source {
	const uint8_t *bytes;
	size_t size;
	const char *names; /* of sections, NUL-terminated as a whole */
	size_t names_bytes;
	uint64_t phdrs; /* where they stand */
};

/* A section of the copy, and where its content comes from. */
struct piece {
	const uint8_t *from;
	uint64_t from_bytes;
	uint64_t at, bytes;
	bool packed;
};

struct copy {
	Elf64_Ehdr head;
	Elf64_Shdr *sections; /* as they shall be in the copy */
	struct piece *pieces; /* the largest first */
	unsigned piece_count;
	uint64_t from_bytes;   /* of all pieces */
	uint64_t packed_bytes; /* of those that are compressed, when they are inflated */
	int fd;
	atomic_uint next; /* piece that nobody works on */
	atomic_bool failed;
};

/* NULL: not all of it is in the file. */
static const void *bytes_at(const struct source *s, uint64_t offset, uint64_t bytes)
{
	return offset <= s->size && bytes <= s->size - offset ? s->bytes + offset : NULL;
}

/* NULL: it has none, and libdw refuses the file. */
static const char *name_of(const struct source *s, const Elf64_Shdr *section)
{
	return section->sh_name < s->names_bytes ? s->names + section->sh_name : NULL;
}

static bool is_one_of(const char *name, const char *const *list)
{
	while (*list && strcmp(name, *list) != 0)
		list++;
	return *list != NULL;
}

/* Whether source_lines, or libdw on its behalf, reads it. */
static bool is_read(const char *name, const Elf64_Shdr *section)
{
	static const char *const unread[] = { ".debug_loc",
		                              ".debug_loclists",
		                              ".debug_frame",
		                              ".debug_macro",
		                              ".debug_macinfo",
		                              ".debug_names",
		                              ".debug_pubnames",
		                              ".debug_pubtypes",
		                              ".debug_gnu_pubnames",
		                              ".debug_gnu_pubtypes",
		                              NULL };

	if (section->sh_type == SHT_NOBITS)
		return false;
	return section->sh_type == SHT_NOTE || !strcmp(name, ".gnu_debugaltlink") ||
	       (strstr(name, "debug_") && !is_one_of(name, unread));
}

static bool is_sound_head(const struct source *s, const Elf64_Ehdr *head)
{
	return !memcmp(head->e_ident, ELFMAG, SELFMAG) && head->e_ident[EI_CLASS] == ELFCLASS64 &&
	       head->e_ident[EI_DATA] == ELFDATA2LSB && head->e_ident[EI_VERSION] == EV_CURRENT &&
	       (head->e_type == ET_DYN || head->e_type == ET_EXEC) && head->e_shstrndx < head->e_shnum &&
	       head->e_shentsize == sizeof(Elf64_Shdr) && (!head->e_phnum || head->e_phentsize == sizeof(Elf64_Phdr)) &&
	       bytes_at(s, head->e_shoff, head->e_shnum * sizeof(Elf64_Shdr)) &&
	       bytes_at(s, head->e_phoff, head->e_phnum * sizeof(Elf64_Phdr));
}

static bool read_head(struct source *s, struct copy *c)
{
	const void *head = bytes_at(s, 0, sizeof c->head);

	if (!head)
		return false;
	memcpy(&c->head, head, sizeof c->head);
	if (!is_sound_head(s, &c->head))
		return false;
	c->sections = calloc(c->head.e_shnum, sizeof *c->sections);
	if (!c->sections)
		return false;
	memcpy(c->sections, s->bytes + c->head.e_shoff, c->head.e_shnum * sizeof *c->sections);
	s->phdrs = c->head.e_phoff;
	const Elf64_Shdr *names = &c->sections[c->head.e_shstrndx];
	s->names = bytes_at(s, names->sh_offset, names->sh_size);
	s->names_bytes = names->sh_size;
	return names->sh_type == SHT_STRTAB && !(names->sh_flags & SHF_COMPRESSED) && s->names && s->names_bytes &&
	       !s->names[s->names_bytes - 1];
}

/* What the section says of its content when inflated. False: libelf does not inflate it. */
static bool read_packing(const struct source *s, const Elf64_Shdr *section, Elf64_Chdr *packing)
{
	const void *at = section->sh_size >= sizeof *packing ? bytes_at(s, section->sh_offset, section->sh_size) : NULL;

	if (!at || section->sh_type == SHT_NULL || section->sh_flags & SHF_ALLOC)
		return false;
	memcpy(packing, at, sizeof *packing);
	return packing->ch_type == ELFCOMPRESS_ZLIB && packing->ch_size &&
	       packing->ch_size / RATIO_MAX <= section->sh_size - sizeof *packing && packing->ch_addralign &&
	       !(packing->ch_addralign & (packing->ch_addralign - 1));
}

/*
 * Whether libdw would look for another file where this one lies: that which it shares with others, if its path is
 * relative, or .dwo files.
 */
static bool refers_to_neighbours(const struct source *s, const char *name, const Elf64_Shdr *section)
{
	const char *path = bytes_at(s, section->sh_offset, section->sh_size);

	if (!strcmp(name, ".gnu_debugaltlink"))
		return section->sh_type != SHT_NOBITS && (!path || !section->sh_size || path[0] != '/');
	return !strcmp(name, ".debug_addr");
}

/* Makes the section one of the copy, which has *size bytes so far. */
static bool add_piece(const struct source *s, struct copy *c, Elf64_Shdr *section, uint64_t *size)
{
	const uint8_t *from = bytes_at(s, section->sh_offset, section->sh_size);
	struct piece piece = { from, section->sh_size, (*size + 15) / 16 * 16, section->sh_size,
		               section->sh_flags & SHF_COMPRESSED };
	Elf64_Chdr packing;

	if (!from)
		return false;
	if (piece.packed) {
		if (!read_packing(s, section, &packing))
			return false;
		piece.from += sizeof packing;
		piece.from_bytes -= sizeof packing;
		piece.bytes = packing.ch_size;
		c->packed_bytes += packing.ch_size;
		section->sh_flags &= ~(Elf64_Xword)SHF_COMPRESSED;
		section->sh_size = packing.ch_size;
		section->sh_addralign = packing.ch_addralign;
	}
	c->from_bytes += piece.from_bytes;
	section->sh_offset = piece.at;
	*size = piece.at + piece.bytes;
	c->pieces[c->piece_count++] = piece;
	return true;
}

static int compare_pieces(const void *a, const void *b)
{
	const struct piece *x = a;
	const struct piece *y = b;

	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/* A file that is larger than the limit ends the program. */
static bool is_allowed(uint64_t bytes)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && (limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur);
}

/* False: no copy is possible, or it would bring nothing. */
static bool plan(const struct source *s, struct copy *c)
{
	uint64_t size = sizeof c->head + c->head.e_phnum * sizeof(Elf64_Phdr);

	c->pieces = calloc(c->head.e_shnum, sizeof *c->pieces);
	if (!c->pieces)
		return false;
	for (unsigned i = 1; i < c->head.e_shnum; i++) {
		Elf64_Shdr *section = &c->sections[i];
		const char *name = name_of(s, section);
		if (!name || refers_to_neighbours(s, name, section))
			return false;
		if (i != c->head.e_shstrndx && !is_read(name, section))
			section->sh_type = SHT_NOBITS;
		else if (!add_piece(s, c, section, &size))
			return false;
	}
	c->head.e_phoff = sizeof c->head;
	c->head.e_shoff = (size + 15) / 16 * 16;
	qsort(c->pieces, c->piece_count, sizeof *c->pieces, compare_pieces);
	/* Sections that overlap, of which there may be thousands, would make the copy larger than libdw's. */
	return c->packed_bytes > 0 && c->from_bytes <= s->size &&
	       is_allowed(c->head.e_shoff + c->head.e_shnum * sizeof(Elf64_Shdr));
}

/* Room for a piece: in huge pages where there are some, because its first use is a good part of the time otherwise. */
struct buffer {
	uint8_t *bytes;
	uint64_t size;
};

static bool make_room(struct buffer *b, uint64_t bytes)
{
	uint64_t whole = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;

	if (bytes <= b->size)
		return true;
	free(b->bytes);
	b->bytes = aligned_alloc(HUGE_PAGE, whole);
	b->size = b->bytes ? whole : 0;
	if (b->bytes)
		madvise(b->bytes, whole, MADV_HUGEPAGE);
	return b->bytes != NULL;
}

static bool put_piece(const struct copy *c, const struct piece *p, struct libdeflate_decompressor *d, struct buffer *b)
{
	size_t used, made;

	if (!p->packed)
		return pwrite_all(c->fd, p->from, p->bytes, p->at);
	/* The checksum is right; as for libelf, nothing may stand behind the stream, and no byte may be missing. */
	return make_room(b, p->bytes) &&
	       libdeflate_zlib_decompress_ex(d, p->from, p->from_bytes, b->bytes, p->bytes, &used, &made) ==
	               LIBDEFLATE_SUCCESS &&
	       used == p->from_bytes && made == p->bytes && pwrite_all(c->fd, b->bytes, p->bytes, p->at);
}

static void *put_pieces(void *arg)
{
	struct copy *c = arg;
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	struct buffer b = { 0 };
	bool good = d != NULL;
	unsigned i;

	/* The join orders what was written before what is read, so nothing here has to. */
	while (good && !atomic_load_explicit(&c->failed, memory_order_relaxed) &&
	       (i = atomic_fetch_add_explicit(&c->next, 1, memory_order_relaxed)) < c->piece_count)
		good = put_piece(c, &c->pieces[i], d, &b);
	if (!good)
		atomic_store_explicit(&c->failed, true, memory_order_relaxed);
	if (d)
		libdeflate_free_decompressor(d);
	free(b.bytes);
	return NULL;
}

/* A second thread takes its share where that is worth more than the thread. Signals are for the first. */
static bool put_all(const struct source *s, struct copy *c)
{
	size_t phdrs = c->head.e_phnum * sizeof(Elf64_Phdr);
	sigset_t all, before;
	pthread_t helper;

	sigfillset(&all);
	sigdelset(&all, SIGSYS); /* the jail's own */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool helped = c->packed_bytes >= HELPED_BYTES && !pthread_create(&helper, NULL, put_pieces, c);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	put_pieces(c);
	if (helped)
		pthread_join(helper, NULL);
	return !c->failed && pwrite_all(c->fd, &c->head, sizeof c->head, 0) &&
	       pwrite_all(c->fd, s->bytes + s->phdrs, phdrs, c->head.e_phoff) &&
	       pwrite_all(c->fd, c->sections, c->head.e_shnum * sizeof *c->sections, c->head.e_shoff);
}

static int unpack(struct source *s)
{
	struct copy c = { .fd = -1 };
	bool good = read_head(s, &c) && plan(s, &c) && (c.fd = memfd_create("memanalyze", MFD_CLOEXEC)) >= 0 &&
	            put_all(s, &c);

	if (!good && c.fd >= 0)
		close(c.fd);
	free(c.sections);
	free(c.pieces);
	return good ? c.fd : -1;
}

int debug_unpack(int fd)
{
	struct stat st;

	if (fstat(fd, &st) || st.st_size <= 0)
		return -1;
	struct source s = { .size = (size_t)st.st_size };
	void *bytes = mmap(NULL, s.size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return -1;
	s.bytes = bytes;
	int copy = unpack(&s);
	munmap(bytes, s.size);
	return copy;
}
