/* SPDX-License-Identifier: MIT */
#include "stack_switch.h"

#include <stdlib.h>

#include "cleanup.h"

#define CHUNK_BYTES (1u << 20)

/* mov, xchg with %rsp as destination: REX.W, opcode, ModRM. */
static bool sets_stack_pointer(const uint8_t *code)
{
	uint8_t rex = code[0], modrm = code[2];
	bool into_rm = !(rex & 1) && (modrm & 0xc7) == 0xc4, into_reg = !(rex & 4) && (modrm & 0x38) == 0x20;

	switch (code[1]) {
	case 0x87: return into_rm || into_reg;
	case 0x89: return into_rm;
	case 0x8b: return into_reg;
	case 0x94: return rex == 0x48; /* xchg %rax, %rsp */
	default: return false;
	}
}

/* Index of the row in force at pc; count is not 0. */
static uint32_t row_at(const struct unwind_rows *rows, uint64_t pc)
{
	uint32_t count = unwind_rows_until(rows, pc);

	return count ? count - 1 : 0;
}

/* Row i is unsupported from pc on, for a while. */
static int mark(struct unwind_rows *rows, uint32_t i, uint32_t pc)
{
	const uint32_t rule = rows->rule[i], unsupported = UNWIND_RULE(UNWIND_UNSUPPORTED, 0, 0);
	bool last = i + 1 == rows->count;

	if ((last || rows->pc[i + 1] - pc > STACK_SWITCH_REACH) &&
	    unwind_rows_insert(rows, i, pc + STACK_SWITCH_REACH, rule))
		return -ENOMEM;
	if (rows->pc[i] == pc) {
		rows->rule[i] = unsupported;
		return 0;
	}
	return unwind_rows_insert(rows, i, pc, unsupported);
}

int stack_switch_mark_bytes(struct unwind_rows *rows, const uint8_t *code, size_t bytes, uint64_t at, struct err *e)
{
	for (size_t i = 0; rows->count && i + STACK_SWITCH_BYTES <= bytes; i++) {
		if ((code[i] & 0xf8) != 0x48 || !sets_stack_pointer(code + i))
			continue;
		uint32_t row = row_at(rows, at + i);
		if (UNWIND_KIND(rows->rule[row]) == UNWIND_RSP && mark(rows, row, (uint32_t)(at + i)))
			return err_set(e, ENOMEM, "no memory for unwind rows");
	}
	return 0;
}

int stack_switch_mark(struct unwind_rows *rows, const struct module_file *f, struct err *e)
{
	const struct elf_module *m = f->module;
	AUTO_FREE uint8_t *code = malloc(CHUNK_BYTES);
	struct err ignored;
	int r = 0;

	if (!code)
		return err_set(e, ENOMEM, "no memory for the code of a module");
	for (size_t i = 0; i < m->phdr_count && !r; i++) {
		const Elf64_Phdr *p = &m->phdrs[i];
		uint64_t start = m->bias + p->p_vaddr, end = start + p->p_filesz;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || start < m->exec_start || end > m->exec_end)
			continue;
		for (uint64_t at = start; at < end && !r; at += CHUNK_BYTES - STACK_SWITCH_BYTES + 1) {
			size_t bytes = end - at < CHUNK_BYTES ? end - at : CHUNK_BYTES;
			if (module_file_read(f, at, code, bytes, &ignored) == 0)
				r = stack_switch_mark_bytes(rows, code, bytes, at - m->exec_start, e);
		}
	}
	return r;
}
