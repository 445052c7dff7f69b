/* SPDX-License-Identifier: MIT */
#include "unwind/stack_base.h"

#include <errno.h>
#include <string.h>

/* The first one that is there. */
static const char *const bases[] = {
	/* greenlet::UserGreenlet::inner_bootstrap(PyGreenlet*, PyObject*), 3; with references to counted ones, 2 */
	"_ZN8greenlet12UserGreenlet15inner_bootstrapEP9_greenletP7_object",
	"_ZN8greenlet12UserGreenlet15inner_bootstrapERNS_4refs14_OwnedGreenletI9_greenletXadL_ZNS1_"
	"15GreenletCheckerEPvEEEE"
	"RNS1_14OwnedReferenceI7_objectXadL_ZNS1_11NoOpCheckerES4_EEEE",
	/* greenlet::UserGreenlet::g_initialstub(void*), where the compiler has put it in there */
	"_ZN8greenlet12UserGreenlet13g_initialstubEPv",
};

/* Makes a row begin at pc. */
static int split(struct unwind_rows *rows, uint32_t pc)
{
	uint32_t count = unwind_rows_until(rows, pc);

	if (rows->pc[count - 1] == pc)
		return 0;
	return unwind_rows_insert(rows, count - 1, pc, rows->rule[count - 1]);
}

int stack_base_mark_rows(struct unwind_rows *rows, uint32_t start, uint32_t end)
{
	if (start >= end || !rows->count)
		return 0;
	if (split(rows, end) || split(rows, start))
		return -ENOMEM;
	uint32_t first = unwind_rows_until(rows, start), next = unwind_rows_until(rows, end) - 1;
	rows->rule[first - 1] = UNWIND_RULE(UNWIND_END, 0, 0);
	memmove(rows->pc + first, rows->pc + next, (rows->count - next) * sizeof *rows->pc);
	memmove(rows->rule + first, rows->rule + next, (rows->count - next) * sizeof *rows->rule);
	rows->count -= next - first;
	return 0;
}

void stack_base_find(const struct elf_module *m, uint32_t *start, uint32_t *end)
{
	struct elf_symbol symbol;
	size_t i = 0;

	*start = *end = 0;
	while (i < sizeof bases / sizeof *bases && !elf_module_find(m, bases[i], NULL, &symbol))
		i++;
	if (i == sizeof bases / sizeof *bases || !symbol.function)
		return;
	uint64_t at = symbol.address - m->exec_start, bytes = m->exec_end - m->exec_start;
	if (symbol.address < m->exec_start || at >= bytes || symbol.bytes >= bytes - at || bytes > UINT32_MAX)
		return;
	*start = (uint32_t)at;
	*end = (uint32_t)(at + symbol.bytes);
}

int stack_base_mark(struct unwind_rows *rows, const struct elf_module *m, struct err *e)
{
	uint32_t start, end;

	stack_base_find(m, &start, &end);
	if (stack_base_mark_rows(rows, start, end))
		return err_set(e, ENOMEM, "no memory for unwind rows");
	return 0;
}
