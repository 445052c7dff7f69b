/* SPDX-License-Identifier: MIT */
#include "arch/stack_switch.h"

#include <errno.h>

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
		if (UNWIND_KIND(rows->rule[row]) == UNWIND_SP && mark(rows, row, (uint32_t)(at + i)))
			return err_set(e, ENOMEM, "no memory for unwind rows");
	}
	return 0;
}

struct marking {
	struct unwind_rows *rows;
	uint64_t exec_start;
	struct err *error;
};

static int mark_piece(void *context, const uint8_t *code, size_t bytes, uint64_t address)
{
	const struct marking *m = context;

	return stack_switch_mark_bytes(m->rows, code, bytes, address - m->exec_start, m->error);
}

int stack_switch_mark(struct unwind_rows *rows, const struct module_file *f, struct err *e)
{
	struct marking m = { rows, f->module->exec_start, e };
	struct err ignored;

	int rc = module_file_code(f, STACK_SWITCH_BYTES - 1, mark_piece, &m, &ignored);
	return rc == -ENOMEM ? err_set(e, ENOMEM, "no memory for unwind rows") : 0;
}
