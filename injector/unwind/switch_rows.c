/* SPDX-License-Identifier: MIT */
#include "unwind/switch_rows.h"

#include <errno.h>

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

static bool counts_from_sp(uint32_t rule)
{
	const uint32_t kind = UNWIND_KIND(rule);

	return kind == UNWIND_SP || kind == UNWIND_PAIR_SP || kind == UNWIND_LINK_SP;
}

int switch_rows_mark_bytes(struct unwind_rows *rows, const uint8_t *code, size_t bytes, uint64_t at, struct err *e)
{
	const size_t first = (STACK_SWITCH_STEP - at % STACK_SWITCH_STEP) % STACK_SWITCH_STEP;

	for (size_t i = first; rows->count && i + STACK_SWITCH_BYTES <= bytes; i += STACK_SWITCH_STEP) {
		if (!stack_switch_at(code + i))
			continue;
		uint32_t row = row_at(rows, at + i);
		if (counts_from_sp(rows->rule[row]) && mark(rows, row, (uint32_t)(at + i)))
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

	return switch_rows_mark_bytes(m->rows, code, bytes, address - m->exec_start, m->error);
}

int switch_rows_mark(struct unwind_rows *rows, const struct module_file *f, struct err *e)
{
	struct marking m = { rows, f->module->exec_start, e };

	int rc = module_file_code(f, STACK_SWITCH_BYTES - 1, mark_piece, &m, ERR_IGNORED);
	return rc == -ENOMEM ? err_set(e, ENOMEM, "no memory for unwind rows") : 0;
}
