/* SPDX-License-Identifier: MIT */
/*
 * Who calls the allocation functions of a module from inside of it, and who takes their addresses there.
 *
 * Every position of the executable segments is taken for the end of a distance of four bytes, as code_scan.h does: a
 * real reference cannot be missed. What stands before it tells what it is.
 */
#include <stdlib.h>
#include <string.h>

#include "allocators/allocator_internal.h"
#include "base/cleanup.h"
#include "arch/code.h"
#include "arch/instruction.h"

#define PIECE_BYTES (1u << 20)
#define OVERLAP_BYTES (DISTANCE_BEFORE + DISTANCE_BYTES - 1)
#define AROUND_BYTES (64u << 10) /* of a function that is decoded to know whether there is a branch */
#define INSIDE_BYTES 20u         /* behind an entry; a displaced byte is not further */

struct scan {
	struct finder *f;
	const struct module_view *v;
	struct code_extent wanted; /* the entries */
	uint64_t piece;            /* of the code: address of what has been read of it */
};

/*
 * Is the address in one of the module's allocation functions? Calls among these are found by their layers. The C
 * library has the whole of its allocator in one place.
 */
static bool is_among_functions(const struct scan *s, uint64_t address)
{
	if (s->v->file.module == s->f->in->libc->module && address >= s->wanted.start && address < s->wanted.end)
		return true;
	for (size_t i = 0; i < s->f->out.function_count; i++) {
		const struct allocator_function *fn = &s->f->out.functions[i];
		if (fn->module == s->v->module && address - fn->address < fn->bytes)
			return true;
	}
	return false;
}

/* The instructions of the function are decoded one after the other. It is certain that they are what the processor runs
 * only if none of them leads into the middle of another: there may be data between them. */
struct decoded {
	uint64_t start, bytes;
	uint8_t *code;
	bool *begins; /* an instruction, by its offset */
	bool has;     /* one that has its distance at the address that was asked for */
};

static bool decode(struct decoded *d, uint64_t distance)
{
	struct instruction in;

	for (uint64_t at = 0; at < d->bytes; at += in.bytes) {
		if (!instruction_read(&in, d->code + at, d->bytes - at, d->start + at))
			return false;
		d->begins[at] = true;
		if (in.second_entry)
			d->begins[at + in.second_entry] = true;
		d->has |= in.distance_bytes && in.address + in.distance_at == distance;
	}
	for (uint64_t at = 0; at < d->bytes; at += in.bytes)
		if (!instruction_read(&in, d->code + at, d->bytes - at, d->start + at) ||
		    (in.has_target && in.target - d->start < d->bytes && !d->begins[in.target - d->start]))
			return false;
	return true;
}

/*
 * What looks like a branch may be bytes of other instructions. It is none if all of the function around it can be
 * decoded, from its entry on, and no instruction has its distance there.
 */
static bool may_be_branch(const struct scan *s, uint64_t distance)
{
	const struct function_table *t = &s->v->table;
	struct decoded d = { 0 };

	if (!function_table_around(t, distance, &d.start, &d.bytes) || d.bytes > AROUND_BYTES ||
	    function_table_is_part(t, d.start) || budget_work(&s->f->budget, 2 * d.bytes, ERR_IGNORED))
		return true;
	AUTO_FREE uint8_t *code = d.code = malloc(d.bytes);
	AUTO_FREE bool *begins = d.begins = calloc(d.bytes, sizeof *begins);
	return !code || !begins || module_file_read(&s->v->file, d.start, code, d.bytes, ERR_IGNORED) ||
	       !decode(&d, distance) || d.has;
}

/* A branch from elsewhere to behind the entry, such as back from the cold part of the function. */
static void note_entered(const struct scan *s, struct allocator_function *fn, uint64_t from, uint64_t to)
{
	if (to - fn->address < fn->bytes && from - fn->address >= fn->bytes && (!fn->entered || to < fn->entered) &&
	    may_be_branch(s, from))
		fn->entered = to;
}

static void note(void *context, enum distance_kind kind, size_t at, uint64_t target)
{
	struct scan *s = context;
	const uint64_t distance = s->piece + at;

	if (budget_work(&s->f->budget, 2 * s->f->out.function_count, ERR_IGNORED))
		return;
	for (size_t i = 0; i < s->f->out.function_count; i++) {
		struct allocator_function *fn = &s->f->out.functions[i];
		uint64_t inside = target - fn->address;

		if (fn->module != s->v->module || inside > INSIDE_BYTES)
			continue;
		if (inside && kind == DISTANCE_BRANCH)
			note_entered(s, fn, distance, target);
		else if (inside)
			continue;
		else if (kind == DISTANCE_BRANCH)
			fn->direct_calls += !is_among_functions(s, distance);
		else if (kind == DISTANCE_ADDRESS)
			fn->address_taken++;
	}
}

static int scan_segment(struct scan *s, uint64_t start, uint64_t bytes, uint8_t *buffer, struct err *e)
{
	for (uint64_t done = 0; done < bytes;) {
		uint64_t before = done ? OVERLAP_BYTES : 0;
		uint64_t part = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
		int r = module_file_read(&s->v->file, start + done - before, buffer, before + part, e);

		if (r)
			return r;
		s->piece = start + done - before;
		code_distances(buffer, before + part, s->piece, &s->wanted, note, s);
		r = budget_check(&s->f->budget, e);
		if (r)
			return r;
		done += part;
	}
	return 0;
}

/* Words of data that the loader fills with the address of a function of the module itself. */
static void count_words(struct finder *f, const struct module_view *v)
{
	const struct elf_module *m = v->file.module;
	AUTO_FREE Elf64_Rela *relas = NULL;
	size_t count = 0;

	if (elf_module_relocations(m, &f->memory, &m->rela, &relas, &count, ERR_IGNORED))
		return;
	for (size_t i = 0; i < count; i++) {
		struct allocator_function *fn = ELF64_R_TYPE(relas[i].r_info) == RELOCATION_RELATIVE
		                                        ? finder_function(f, m->bias + (uint64_t)relas[i].r_addend)
		                                        : NULL;
		if (fn)
			fn->address_taken++;
	}
}

int allocator_callers_find(struct finder *f, const struct module_view *v, struct err *e)
{
	const struct elf_module *m = v->file.module;
	struct scan s = { .f = f, .v = v, .wanted.start = UINT64_MAX };

	count_words(f, v);

	for (size_t i = 0; i < f->out.function_count; i++) {
		const struct allocator_function *fn = &f->out.functions[i];
		if (fn->module != v->module)
			continue;
		s.wanted.start = fn->address < s.wanted.start ? fn->address : s.wanted.start;
		s.wanted.end = fn->address + INSIDE_BYTES > s.wanted.end ? fn->address + INSIDE_BYTES : s.wanted.end;
	}
	AUTO_FREE uint8_t *buffer = malloc(PIECE_BYTES + OVERLAP_BYTES);
	if (!buffer)
		return err_set(e, ENOMEM, "no memory to read code");
	for (size_t i = 0; i < m->phdr_count; i++) {
		const Elf64_Phdr *p = &m->phdrs[i];
		int r = p->p_type == PT_LOAD && p->p_flags & PF_X
		                ? scan_segment(&s, m->bias + p->p_vaddr, p->p_filesz, buffer, e)
		                : 0;
		if (r)
			return r;
	}
	return 0;
}
