/* SPDX-License-Identifier: MIT */
#include "python_attached.h"

#include <elf.h>
#include <stdlib.h>

#include "cleanup.h"
#include "module_file.h"
#include "thread_variable.h"

#define CODE_BYTES 64u
#define DISTANCE_MAX (1 << 20) /* of thread-local storage below the thread pointer */

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

/* Is the word filled in by a relocation of that type? */
static int relocated(const struct look *l, uint64_t address, uint32_t type, bool *is, struct err *e)
{
	AUTO_FREE Elf64_Rela *relas = NULL;
	size_t count = 0;

	*is = false;
	int rc = elf_module_relocations(l->module, &l->view->memory, &l->module->rela, &relas, &count, e);
	for (size_t i = 0; i < count && rc == 0; i++)
		*is |= ELF64_R_TYPE(relas[i].r_info) == type && l->module->bias + relas[i].r_offset == address;
	return rc;
}

/* The offset of a module's block from each thread pointer; index: what its code gives to __tls_get_addr. */
static int block_offset(const struct look *l, const char *function, uint64_t index, int64_t *offset, struct err *e)
{
	const struct python_specific *s = l->specific;
	uint64_t number, distance;
	struct {
		uint64_t module, offset;
	} words;

	if (!s->link_number || !s->link_distance || !l->module->link_map)
		return err_set(e, ENOSYS, "its C library does not tell where a module's thread-local storage is");
	const struct target_piece pieces[] = {
		{ index, sizeof words, &words },
		{ l->module->link_map + s->link_number, 8, &number },
		{ l->module->link_map + s->link_distance, 8, &distance },
	};
	int rc = target_read_batch(&l->view->memory, pieces, sizeof pieces / sizeof pieces[0], e);
	if (rc)
		return rc;
	/* 0 and -1 are glibc's words for a module without a fixed place. */
	if (number == 0 || words.module != number || distance == 0 || distance > DISTANCE_MAX ||
	    words.offset >= distance)
		return untold(function, e);
	*offset = (int64_t)words.offset - (int64_t)distance;
	return 0;
}

static int place_of(const struct look *l, const char *function, const struct thread_variable *v, int64_t *offset,
                    struct err *e)
{
	bool right = true;
	uint64_t word = 0;
	int64_t start = 0;
	int rc = 0;

	if (v->kind == THREAD_VARIABLE_WORD) {
		rc = relocated(l, v->address, R_X86_64_TPOFF64, &right, e);
		if (rc == 0)
			rc = target_read_u64(&l->view->memory, v->address, &word, e);
		start = (int64_t)word;
	} else if (v->kind == THREAD_VARIABLE_INDEX) {
		rc = relocated(l, v->address, R_X86_64_DTPMOD64, &right, e);
		if (rc == 0 && right)
			rc = block_offset(l, function, v->address, &start, e);
	}
	if (rc)
		return rc;
	if (!right || start < -DISTANCE_MAX || start > 0 || v->offset < -DISTANCE_MAX || v->offset > DISTANCE_MAX ||
	    start + v->offset >= 0 || (start + v->offset) % 8)
		return untold(function, e);
	*offset = start + v->offset;
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
		return err_set(e, ENOSYS, "this version does not keep it in the thread");
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

int python_attached_value(const struct python_view *v, int64_t offset, uint64_t thread, uint64_t *state, struct err *e)
{
	return target_read_u64(&v->memory, thread + (uint64_t)offset, state, e);
}
