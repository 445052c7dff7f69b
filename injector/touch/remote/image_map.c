/* SPDX-License-Identifier: MIT */
#include "touch/remote/image_map.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "arch/elf_machine.h"

#define PAGE 4096u
#define IMAGE_BYTES_MAX (1ull << 30)

struct image {
	const unsigned char *bytes;
	size_t size;
	Elf64_Ehdr header;
};

static uint64_t page_down(uint64_t offset)
{
	return offset & ~(uint64_t)(PAGE - 1);
}

static uint64_t page_up(uint64_t offset)
{
	return page_down(offset + PAGE - 1);
}

/* False: not in the file. */
static bool read_at(const struct image *i, uint64_t offset, void *buffer, size_t bytes)
{
	if (offset > i->size || bytes > i->size - offset)
		return false;
	memcpy(buffer, i->bytes + offset, bytes);
	return true;
}

static bool read_phdr(const struct image *i, unsigned number, Elf64_Phdr *p)
{
	return i->header.e_phoff <= i->size && read_at(i, i->header.e_phoff + number * sizeof *p, p, sizeof *p);
}

static int refuse(struct err *e, const char *why)
{
	return err_set(e, ENOEXEC, "the payload cannot be mapped: %s", why);
}

static int read_header(struct image *i, struct err *e)
{
	Elf64_Ehdr *h = &i->header;

	if (!read_at(i, 0, h, sizeof *h) || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 ||
	    h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_machine != MACHINE_ELF || h->e_type != ET_DYN ||
	    h->e_phentsize != sizeof(Elf64_Phdr))
		return refuse(e, "it is no shared object of this machine");
	return 0;
}

static int add_piece(struct image_layout *l, uint64_t start, uint64_t end, uint32_t prot, struct err *e)
{
	if (start >= end)
		return 0;
	if (l->piece_count == IMAGE_PIECES_MAX)
		return refuse(e, "it has too many segments");
	l->pieces[l->piece_count++] = (struct image_piece){ start, end, prot };
	return 0;
}

static uint32_t protection(uint32_t flags)
{
	return (flags & PF_R ? PROT_READ : 0) | (flags & PF_W ? PROT_WRITE : 0) | (flags & PF_X ? PROT_EXEC : 0);
}

/* Segments are in the order of their addresses, as the ABI asks. */
static int add_segment(struct image_layout *l, const struct image *i, const Elf64_Phdr *p, struct err *e)
{
	uint64_t end = p->p_vaddr + p->p_memsz, file_end = p->p_vaddr + p->p_filesz;
	uint32_t prot = protection(p->p_flags);

	if (p->p_vaddr != p->p_offset || p->p_filesz > p->p_memsz || p->p_memsz > IMAGE_BYTES_MAX ||
	    p->p_vaddr > IMAGE_BYTES_MAX || file_end > i->size || page_down(p->p_vaddr) < l->bytes)
		return refuse(e, "its segments are elsewhere in the file than in memory");
	if ((prot & PROT_WRITE && prot & PROT_EXEC) ||
	    (p->p_memsz > p->p_filesz && (l->bss_end || !(prot & PROT_WRITE))))
		return refuse(e, "it has a segment of an unknown kind");
	if (prot & PROT_EXEC && l->bytes)
		return refuse(e, "its code is not its first segment");
	if (prot & PROT_EXEC)
		l->code_end = end;
	l->bytes = page_up(end);
	if (p->p_memsz > p->p_filesz) {
		l->zero_start = file_end;
		l->zero_end = page_up(file_end) < end ? page_up(file_end) : end;
		l->bss_start = page_up(file_end);
		l->bss_end = l->bytes;
	}
	return prot == PROT_READ ? 0 : add_piece(l, page_down(p->p_vaddr), page_up(file_end), prot, e);
}

/* As loaders do it: the whole pages inside, from the page in which it begins. */
static int add_relro(struct image_layout *l, const Elf64_Phdr *p, struct err *e)
{
	uint64_t start = page_down(p->p_vaddr), end = page_down(p->p_vaddr + p->p_memsz);

	for (unsigned i = 0; i < l->piece_count && start < end; i++) {
		struct image_piece *piece = &l->pieces[i];
		if (!(piece->prot & PROT_WRITE) || start != piece->start || end > piece->end)
			continue;
		piece->start = end;
		if (piece->start == piece->end)
			*piece = l->pieces[--l->piece_count];
		return 0;
	}
	return start < end ? refuse(e, "what is read-only after relocation is not where its data begins") : 0;
}

static int read_segments(struct image_layout *l, const struct image *i, struct err *e)
{
	Elf64_Phdr p;
	int rc = 0;

	for (unsigned n = 0; n < i->header.e_phnum && rc == 0; n++) {
		if (!read_phdr(i, n, &p))
			return refuse(e, "its program headers are not in the file");
		if (p.p_type == PT_TLS || p.p_type == PT_INTERP)
			return refuse(e, "it has thread-local storage, or asks for a loader");
		if (p.p_type == PT_LOAD)
			rc = add_segment(l, i, &p, e);
	}
	for (unsigned n = 0; n < i->header.e_phnum && rc == 0; n++)
		if (read_phdr(i, n, &p) && p.p_type == PT_GNU_RELRO)
			rc = add_relro(l, &p, e);
	return rc == 0 && (!l->bytes || !l->code_end) ? refuse(e, "it has no code") : rc;
}

static int add_relocations(struct image_layout *l, const struct image *i, uint64_t at, uint64_t bytes, struct err *e)
{
	Elf64_Rela rela;

	for (uint64_t done = 0; done < bytes; done += sizeof rela) {
		if (at > i->size || !read_at(i, at + done, &rela, sizeof rela) || l->word_count == IMAGE_WORDS_MAX)
			return refuse(e, "its relocations are not in the file, or too many");
		if (ELF64_R_TYPE(rela.r_info) != RELOCATION_RELATIVE || rela.r_offset % sizeof(uint64_t) ||
		    rela.r_offset > i->size - sizeof(uint64_t))
			return refuse(e, "it has relocations of other kinds than those that are relative");
		l->words[l->word_count++] = (struct image_word){ rela.r_offset, (uint64_t)rela.r_addend };
	}
	return 0;
}

/* What asks for more than relocations of the one kind, or for calls. */
static bool needs_a_loader(const Elf64_Dyn *d)
{
	static const Elf64_Sxword
		asks[] = { DT_NEEDED, DT_REL,        DT_JMPREL,     DT_TEXTREL,         DT_INIT,
		           DT_FINI,   DT_INIT_ARRAY, DT_FINI_ARRAY, 35 /* DT_RELRSZ */, 36 /* DT_RELR */ };

	for (unsigned k = 0; k < sizeof asks / sizeof asks[0]; k++)
		if (d->d_tag == asks[k])
			return true;
	return false;
}

static int read_dynamic(struct image_layout *l, const struct image *i, const Elf64_Phdr *p, struct err *e)
{
	uint64_t rela = 0, rela_bytes = 0;
	Elf64_Dyn d;

	for (uint64_t done = 0; done < p->p_filesz; done += sizeof d) {
		if (p->p_offset > i->size || !read_at(i, p->p_offset + done, &d, sizeof d) || needs_a_loader(&d))
			return refuse(e, "its dynamic section asks for a loader");
		if (d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_RELA)
			rela = d.d_un.d_ptr;
		if (d.d_tag == DT_RELASZ)
			rela_bytes = d.d_un.d_val;
	}
	return add_relocations(l, i, rela, rela_bytes, e);
}

int image_layout(struct image_layout *l, const unsigned char *image, size_t image_bytes, struct err *e)
{
	struct image i = { .bytes = image, .size = image_bytes };
	struct image_layout out = { 0 };
	Elf64_Phdr p;

	int rc = read_header(&i, e);
	rc = rc ?: read_segments(&out, &i, e);
	for (unsigned n = 0; n < i.header.e_phnum && rc == 0; n++)
		if (read_phdr(&i, n, &p) && p.p_type == PT_DYNAMIC)
			rc = read_dynamic(&out, &i, &p, e);
	if (rc == 0)
		*l = out;
	return rc;
}

/* Step 1. */
static int map_file(struct remote *r, uint64_t bytes, int remote_fd, uint64_t *base, uint64_t deadline_ns,
                    struct err *e)
{
	const uint64_t arguments[6] = { 0, bytes, PROT_READ, MAP_PRIVATE, (uint64_t)remote_fd, 0 };
	uint64_t result = 0;

	int rc = remote_call1(r, SYS_mmap, arguments, &result, deadline_ns, e);
	if (rc < 0)
		return rc;
	rc = remote_result(result, e);
	if (rc < 0)
		return err_prefix(e, "the target cannot map the payload");
	*base = result;
	return 0;
}

/* Step 2. */
static int write_words(struct remote *r, const struct image_layout *l, uint64_t base, struct err *e)
{
	static const unsigned char zeros[PAGE];
	int rc = 0;

	for (unsigned i = 0; i < l->word_count && rc == 0; i++) {
		uint64_t word = base + l->words[i].value;
		rc = target_write(r->writer, CHANGE_PAYLOAD, base + l->words[i].offset, &word, sizeof word, e);
	}
	if (rc == 0 && l->zero_end > l->zero_start)
		rc = target_write(r->writer, CHANGE_PAYLOAD, base + l->zero_start, zeros, l->zero_end - l->zero_start,
		                  e);
	return rc;
}

/* Step 3. */
static int protect(struct remote *r, const struct image_layout *l, uint64_t base, uint64_t deadline_ns, struct err *e)
{
	struct stub_call calls[IMAGE_PIECES_MAX + 1] = { 0 };
	unsigned count = 0;

	for (unsigned i = 0; i < l->piece_count; i++)
		calls[count++] =
			(struct stub_call){ .target = SYS_mprotect,
			                    .argument = { base + l->pieces[i].start,
			                                  l->pieces[i].end - l->pieces[i].start, l->pieces[i].prot } };
	if (l->bss_end > l->bss_start)
		calls[count++] =
			(struct stub_call){ .target = SYS_mmap,
			                    .argument = { base + l->bss_start, l->bss_end - l->bss_start,
			                                  PROT_READ | PROT_WRITE,
			                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, (uint64_t)-1, 0 } };
	int rc = remote_call(r, calls, count, deadline_ns, e);
	for (unsigned i = 0; i < count && rc == 0; i++)
		if (remote_result(calls[i].result, e) < 0)
			rc = err_prefix(e,
			                calls[i].target == SYS_mmap
			                        ? "the target has no memory for the payload"
			                        : "the target may not execute the payload, or not write to its data");
	return rc;
}

int image_map(struct remote *r, const struct image_layout *l, int remote_fd, uint64_t *base, uint64_t deadline_ns,
              struct err *e)
{
	uint64_t at = 0;

	int rc = map_file(r, l->bytes, remote_fd, &at, deadline_ns, e);
	if (rc < 0)
		return rc;
	changes_made(r->writer->changes, CHANGE_PAYLOAD);
	rc = write_words(r, l, at, e);
	rc = rc ?: protect(r, l, at, deadline_ns, e);
	if (rc == 0)
		*base = at;
	if (rc < 0 && rc != -ETIMEDOUT && rc != -ESRCH) {
		struct stub_call undo = image_map_undo_call(at, l->bytes);
		struct err second;
		if (remote_call(r, &undo, 1, deadline_ns, &second) < 0)
			err_prefix(e, "%s", second.text);
		else
			changes_end(r->writer->changes, CHANGE_PAYLOAD, CHANGE_UNDONE);
	}
	return rc;
}

struct stub_call image_map_undo_call(uint64_t base, uint64_t bytes)
{
	return (struct stub_call){ .target = SYS_munmap, .argument = { base, bytes } };
}
