/* SPDX-License-Identifier: MIT */
#include "touch/start/start_image.h"

#include <string.h>

#include "arch/elf_machine.h"
#include "files/whole_io.h"

#define PAGE 4096u
#define WORDS 512u           /* that are read at once */
#define WORDS_MAX (1u << 20) /* of arguments and environment: the kernel takes 6 MiB at most (execve(2)) */
#define AUXILIARY_MAX 64u
#define ALIGN 16u

/* One word after the other, from the stack. */
struct words {
	int mem;
	uint64_t next; /* address of the next one */
	uint64_t list[WORDS];
	unsigned at, count, left;
};

static bool refill(struct words *w)
{
	/* The stack ends soon after the last word. */
	for (unsigned wanted = WORDS; wanted > 0; wanted /= 2) {
		if (!whole_io_pread(w->mem, w->list, wanted * sizeof w->list[0], w->next))
			continue;
		w->count = wanted;
		w->at = 0;
		return true;
	}
	return false;
}

static bool next_word(struct words *w, uint64_t *word)
{
	if (w->left == 0 || (w->at == w->count && !refill(w)))
		return false;
	w->left--;
	w->next += sizeof *word;
	*word = w->list[w->at++];
	return true;
}

static bool skip_to_null(struct words *w)
{
	uint64_t word;

	do {
		if (!next_word(w, &word))
			return false;
	} while (word);
	return true;
}

struct auxiliary {
	uint64_t phdr, phent, phnum, base;
};

static bool read_auxiliary(struct words *w, struct start_image *s, struct auxiliary *a)
{
	for (unsigned i = 0; i < AUXILIARY_MAX; i++) {
		uint64_t type, value;
		if (!next_word(w, &type) || !next_word(w, &value))
			return false;
		switch (type) {
		case AT_NULL: return s->entry_at && a->phdr;
		case AT_PHDR: a->phdr = value; break;
		case AT_PHENT: a->phent = value; break;
		case AT_PHNUM: a->phnum = value; break;
		case AT_BASE: a->base = value; break;
		case AT_ENTRY:
			s->entry = value;
			s->entry_at = w->next - sizeof value;
			break;
		default: break;
		}
	}
	return false;
}

/* Where the program's own addresses begin: by the segment of its headers, or the one that they are in. */
static bool find_bias(struct start_object *o, uint64_t phdr)
{
	for (unsigned i = 0; i < o->segment_count; i++) {
		if (o->segments[i].p_type != PT_PHDR)
			continue;
		o->bias = phdr - o->segments[i].p_vaddr;
		return true;
	}
	for (unsigned i = 0; i < o->segment_count; i++) {
		const Elf64_Phdr *p = &o->segments[i];
		if (p->p_type != PT_LOAD || p->p_offset != 0)
			continue;
		o->bias = phdr - p->p_vaddr - sizeof(Elf64_Ehdr);
		return true;
	}
	return false;
}

static bool read_segments(int mem, uint64_t phdr, uint64_t entry_bytes, uint64_t count, struct start_object *o)
{
	if (entry_bytes != sizeof o->segments[0] || count == 0 || count > START_SEGMENTS_MAX ||
	    !whole_io_pread(mem, o->segments, count * sizeof o->segments[0], phdr))
		return false;
	o->segment_count = (unsigned)count;
	return true;
}

/* base: where its file header is. One that is not as linkers make them counts as none. */
static void read_loader(int mem, uint64_t base, struct start_object *loader)
{
	struct start_object o = { 0 };
	Elf64_Ehdr h;

	if (!base || !whole_io_pread(mem, &h, sizeof h, base) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 ||
	    h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_phoff != sizeof h)
		return;
	if (read_segments(mem, base + h.e_phoff, h.e_phentsize, h.e_phnum, &o) && find_bias(&o, base + h.e_phoff))
		*loader = o;
}

int start_image_read(struct start_image *image, int mem, uint64_t sp, struct err *e)
{
	struct start_image s = { .mem = mem, .argv = sp + sizeof(uint64_t) };
	struct words w = { .mem = mem, .next = sp, .left = WORDS_MAX };
	struct auxiliary a = { 0 };

	if (!next_word(&w, &s.argc) || !skip_to_null(&w) || !skip_to_null(&w) || !read_auxiliary(&w, &s, &a))
		return err_set(e, ENOEXEC, "its stack is not as that of a program for " MACHINE_NAME);
	if (!read_segments(mem, a.phdr, a.phent, a.phnum, &s.program))
		return err_set(e, ENOEXEC, "its program headers are not as linkers make them");
	if (!find_bias(&s.program, a.phdr))
		return err_set(e, ENOEXEC, "it cannot be told where it was loaded");
	for (unsigned i = 0; i < s.program.segment_count; i++)
		s.dynamic |= s.program.segments[i].p_type == PT_INTERP;
	if (s.dynamic)
		read_loader(mem, a.base, &s.loader);
	*image = s;
	return 0;
}

static bool overlaps(const struct start_object *o, uint64_t page)
{
	for (unsigned i = 0; i < o->segment_count; i++) {
		const Elf64_Phdr *p = &o->segments[i];
		uint64_t start = o->bias + p->p_vaddr;
		if (p->p_type == PT_LOAD && start > page && start < page + PAGE)
			return true;
	}
	return false;
}

/* Behind one segment. At its end: what attaches while the program waits needs its beginning (cave.h). */
static bool padding_of(int mem, const struct start_object *o, const Elf64_Phdr *p, uint64_t bytes, uint64_t *address)
{
	static const uint8_t zeros[PAGE];
	uint8_t now[PAGE];
	uint64_t end = o->bias + p->p_vaddr + p->p_memsz;
	uint64_t at = (end + ALIGN - 1) & ~(uint64_t)(ALIGN - 1), page = (end - 1) & ~(uint64_t)(PAGE - 1);

	if (p->p_type != PT_LOAD || (p->p_flags & (PF_X | PF_W)) != PF_X || !p->p_memsz || p->p_filesz != p->p_memsz)
		return false;
	if (at >= page + PAGE || page + PAGE - at < bytes || overlaps(o, page))
		return false;
	if (!whole_io_pread(mem, now, page + PAGE - at, at) || memcmp(now, zeros, page + PAGE - at) != 0)
		return false;
	*address = (page + PAGE - bytes) & ~(uint64_t)(ALIGN - 1);
	return true;
}

int start_image_padding(const struct start_image *image, uint64_t bytes, uint64_t *address, struct err *e)
{
	const struct start_object *const objects[] = { &image->program, &image->loader };

	for (unsigned k = 0; k < sizeof objects / sizeof objects[0]; k++)
		for (unsigned i = 0; i < objects[k]->segment_count; i++)
			if (padding_of(image->mem, objects[k], &objects[k]->segments[i], bytes, address))
				return 0;
	return err_set(e, ENOSPC, "there are no %lu unused bytes behind its code", (unsigned long)bytes);
}

bool start_image_is_code(const struct start_image *image, uint64_t address)
{
	const struct start_object *o = &image->program;

	for (unsigned i = 0; i < o->segment_count; i++) {
		const Elf64_Phdr *p = &o->segments[i];
		if (p->p_type == PT_LOAD && p->p_flags & PF_X && address - o->bias - p->p_vaddr < p->p_memsz)
			return true;
	}
	return false;
}
