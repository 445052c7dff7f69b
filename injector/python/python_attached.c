/* SPDX-License-Identifier: MIT */
#include "python/python_attached.h"

#include <elf.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "elf/module_file.h"
#include "arch/thread_block.h"
#include "arch/thread_variable.h"

#define CODE_BYTES 64u
#define DISTANCE_MAX (1 << 20) /* of thread-local storage from the thread pointer */

/* Not all of them are there in each version. */
static const char *const functions[] = { "PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet",
	                                 "_PyThreadState_GetCurrent" };
#define FUNCTIONS (sizeof functions / sizeof functions[0])

/* The interpreter that is looked at. */
struct look {
	const struct python_view *view;
	const struct elf_module *module;
	const struct python_specific *specific;
	struct module_file file;
};

static int untold(const char *function, struct err *e)
{
	return err_set(e, ENOSYS, "the code of %s does not tell where a thread's state is", function);
}

static int find_in(const struct look *l, const struct elf_table *table, uint64_t address, uint32_t type,
                   Elf64_Rela *found, struct err *e)
{
	AUTO_FREE Elf64_Rela *relas = NULL;
	size_t count = 0;

	int rc = elf_module_relocations(l->module, &l->view->memory, table, &relas, &count, e);
	for (size_t i = 0; i < count && rc == 0; i++)
		if (ELF64_R_TYPE(relas[i].r_info) == type && l->module->bias + relas[i].r_offset == address)
			*found = relas[i];
	return rc;
}

/* The relocation of that type that fills in the word; *is: there is one. Linkers put descriptors with jump slots. */
static int relocation_of(const struct look *l, uint64_t address, uint32_t type, Elf64_Rela *found, bool *is,
                         struct err *e)
{
	*found = (Elf64_Rela){ 0 };
	int rc = find_in(l, &l->module->rela, address, type, found, e);
	if (type == RELOCATION_TLS_DESCRIPTOR)
		rc = rc ?: find_in(l, &l->module->jmprel, address, type, found, e);
	*is = found->r_info != 0;
	return rc;
}

/* The module's thread-local storage: where it begins, from each thread pointer on, and how long it is. */
struct block {
	int64_t start;
	uint64_t bytes;
	uint64_t number; /* of the module, as the loader counts; 0: not known */
};

static int find_block(const struct look *l, struct block *b, struct err *e)
{
	const struct python_specific *s = l->specific;
	const struct elf_module *m = l->module;
	const Elf64_Phdr *tls = NULL;
	uint64_t distance;
	bool fits;

	for (size_t i = 0; i < m->phdr_count; i++)
		if (m->phdrs[i].p_type == PT_TLS)
			tls = &m->phdrs[i];
	if (!tls || !s->link_number || !s->link_distance || !m->link_map)
		return err_set(e, ENOSYS, "nothing tells where its thread-local storage is");
	const struct target_piece pieces[] = {
		{ m->link_map + s->link_number, 8, &b->number },
		{ m->link_map + s->link_distance, 8, &distance },
	};
	int rc = target_read_batch(&l->view->memory, pieces, sizeof pieces / sizeof pieces[0], e);
	if (rc)
		return rc;
	b->start = thread_block_tls(distance, tls->p_memsz, &fits);
	/* 0, -1 and -2 are glibc's words for a module without a fixed place. */
	if (b->number == 0 || distance == 0 || distance > DISTANCE_MAX || !fits)
		return err_set(e, ENOSYS, "its thread-local storage is not in the same place in each thread");
	b->bytes = tls->p_memsz;
	return 0;
}

/* What the code adds to the thread pointer before its own offset. right: as its relocation says. */
static int base_of(const struct look *l, const struct thread_variable *v, const struct block *b, uint64_t *base,
                   bool *right, struct err *e)
{
	static const uint32_t types[] = { [THREAD_VARIABLE_WORD] = RELOCATION_TLS_OFFSET,
		                          [THREAD_VARIABLE_INDEX] = RELOCATION_TLS_MODULE,
		                          [THREAD_VARIABLE_DESCRIPTOR] = RELOCATION_TLS_DESCRIPTOR };
	const bool one = v->kind == THREAD_VARIABLE_WORD;
	uint64_t words[2] = { 0 };
	Elf64_Rela by;

	*right = true;
	*base = 0;
	if (v->kind == THREAD_VARIABLE_OFFSET)
		return 0;
	int rc = relocation_of(l, v->address, types[v->kind], &by, right, e);
	rc = rc ?: target_read(&l->view->memory, v->address, words, one ? 8 : 16, e);
	if (v->kind == THREAD_VARIABLE_INDEX) {
		*base = (uint64_t)b->start + words[1];
		*right &= words[0] == b->number;
	} else if (v->kind == THREAD_VARIABLE_DESCRIPTOR) {
		/* In static storage; else the second word leads to what the function needs. */
		*base = words[1];
		*right &= ELF64_R_SYM(by.r_info) == 0 && words[1] == (uint64_t)b->start + (uint64_t)by.r_addend;
	} else {
		*base = words[0];
	}
	return rc;
}

/* It must be a word of the block: code inside of the process is going to read it, in each thread. */
static int place_of(const struct look *l, const char *function, const struct thread_variable *v, int64_t *offset,
                    struct err *e)
{
	struct block block;
	uint64_t base;
	bool right;

	int rc = find_block(l, &block, e);
	rc = rc ?: base_of(l, v, &block, &base, &right, e);
	if (rc)
		return rc;
	uint64_t place = base + (uint64_t)v->offset, inside = place - (uint64_t)block.start;
	if (!right || block.bytes < sizeof place || inside > block.bytes - sizeof place || place % sizeof place)
		return untold(function, e);
	*offset = (int64_t)place;
	return 0;
}

/* *offset stays 0 if it is not there. */
static int look_at(const struct look *l, const char *function, int64_t *offset, struct err *e)
{
	struct thread_variable variable;
	uint8_t code[CODE_BYTES];
	struct elf_symbol s;

	*offset = 0;
	if (!elf_module_find(l->module, function, NULL, &s) || !s.function || s.ifunc)
		return 0;
	size_t bytes = s.bytes && s.bytes < sizeof code ? s.bytes : sizeof code;
	if (!elf_module_holds(l->module, s.address, bytes, PF_X))
		return untold(function, e);
	int rc = module_file_read(&l->file, s.address, code, bytes, e);
	if (rc)
		return rc;
	if (!thread_variable_read(&variable, code, bytes, s.address))
		return untold(function, e);
	return place_of(l, function, &variable, offset, e);
}

int python_attached_find(int64_t *offset, const struct python_view *v, const struct elf_module *m,
                         const struct maps *maps, const struct python_specific *s, struct err *e)
{
	struct look l = { .view = v, .module = m, .specific = s };
	int64_t found = 0, one;
	int rc = 0;

	if (v->release->minor < PYTHON_ATTACHED_SINCE)
		return err_set(e, ENOSYS, "this version does not tell which one a thread runs");
	module_file_open(&l.file, m, &v->memory, maps);
	for (size_t i = 0; i < FUNCTIONS && rc == 0; i++) {
		rc = look_at(&l, functions[i], &one, e);
		if (rc == 0 && one && found && one != found)
			rc = err_set(e, ENOSYS, "its functions do not agree where a thread's state is");
		found = one ? one : found;
	}
	module_file_close(&l.file);
	if (rc == 0 && !found)
		rc = err_set(e, ENOSYS, "it exports no function that tells where a thread's state is");
	*offset = found;
	return rc;
}

int python_attached_value(const struct python_view *v, const struct python_specific *s, int64_t offset, uint64_t thread,
                          uint64_t *state, struct err *e)
{
	return target_read_u64(&v->memory, thread + s->block_below + (uint64_t)offset, state, e);
}
