/* SPDX-License-Identifier: MIT */
#include "allocators/function_table.h"

#include <dwarf.h>
#include <stdlib.h>

#include "unwind/frame_header.h"

void function_table_open(struct function_table *t, const struct module_file *file)
{
	struct frame_header h;

	*t = (struct function_table){ .file = file };
	if (!frame_header_read(&h, file) || budget_fits(file->tm->budget, h.count * sizeof *t->rows, ERR_IGNORED))
		return;
	t->base = h.base;
	t->rows = frame_header_rows(&h, file);
	t->count = t->rows ? h.count : 0;
}

void function_table_close(struct function_table *t)
{
	free(t->rows);
	*t = (struct function_table){ 0 };
}

static uint64_t row_entry(const struct function_table *t, size_t i)
{
	return t->base + (uint64_t)(int64_t)t->rows[i].entry;
}

/* The number of rows whose entry is below address. */
static size_t rows_below(const struct function_table *t, uint64_t address)
{
	size_t low = 0, high = t->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (row_entry(t, mid) < address)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The length of the function of a row; *rest is what its description says after that, in the bytes of it. 0: unknown.
 */
static uint64_t describe(const struct function_table *t, size_t row, uint8_t bytes[FRAME_DESCRIPTION_BYTES],
                         const uint8_t **rest)
{
	uint64_t place = t->base + (uint64_t)(int64_t)t->rows[row].place;

	if (!elf_module_holds(t->file->module, place, FRAME_DESCRIPTION_BYTES, 0) ||
	    module_file_read(t->file, place, bytes, FRAME_DESCRIPTION_BYTES, ERR_IGNORED))
		return 0;
	return frame_header_description(bytes, place, row_entry(t, row), rest);
}

static uint64_t described_bytes(const struct function_table *t, size_t row)
{
	uint8_t bytes[FRAME_DESCRIPTION_BYTES];
	const uint8_t *rest;

	return describe(t, row, bytes, &rest);
}

/* Of augmentation data only a short length is expected, none follow in C. */
bool function_table_is_part(const struct function_table *t, uint64_t address)
{
	size_t row = rows_below(t, address);
	uint8_t bytes[FRAME_DESCRIPTION_BYTES];
	const uint8_t *rest;

	if (row == t->count || row_entry(t, row) != address || !describe(t, row, bytes, &rest))
		return false;
	return rest + 2 <= bytes + sizeof bytes && rest[0] == 0 &&
	       (rest[1] == DW_CFA_def_cfa_offset || rest[1] == DW_CFA_def_cfa);
}

uint64_t function_table_bytes(const struct function_table *t, uint64_t address, uint64_t symbol_bytes)
{
	size_t row = rows_below(t, address);
	uint64_t bytes = symbol_bytes;

	/* The larger one: code that is taken for a part of it and is none can only make the answer more careful. */
	uint64_t described = row < t->count && row_entry(t, row) == address ? described_bytes(t, row) : 0;
	if (described > bytes)
		bytes = described;
	return elf_module_holds(t->file->module, address, bytes, PF_X) ? bytes : 0;
}

bool function_table_around(const struct function_table *t, uint64_t address, uint64_t *start, uint64_t *bytes)
{
	size_t row = rows_below(t, address + 1);
	uint64_t entry = row ? row_entry(t, row - 1) : 0;
	uint64_t described = row ? described_bytes(t, row - 1) : 0;

	if (address - entry >= described || !elf_module_holds(t->file->module, entry, described, PF_X))
		return false;
	*start = entry;
	*bytes = described;
	return true;
}

static bool is_function(const Elf64_Sym *s)
{
	return ELF64_ST_TYPE(s->st_info) == STT_FUNC && s->st_shndx != SHN_UNDEF && s->st_shndx != SHN_ABS;
}

uint64_t function_table_before(const struct function_table *t, uint64_t address)
{
	const struct elf_module *m = t->file->module;
	size_t row = rows_below(t, address);
	uint64_t best = row ? row_entry(t, row - 1) : 0;

	if (budget_work(t->file->tm->budget, m->symbol_count, ERR_IGNORED))
		return 0;
	for (size_t i = 0; i < m->symbol_count; i++) {
		uint64_t entry = m->bias + m->symbols[i].st_value;
		if (is_function(&m->symbols[i]) && entry < address && entry > best)
			best = entry;
	}
	return best && elf_module_holds(m, best, address - best, PF_X) ? best : 0;
}

uint64_t function_table_after(const struct function_table *t, uint64_t address)
{
	const struct elf_module *m = t->file->module;
	size_t row = rows_below(t, address + 1);
	uint64_t best = row < t->count ? row_entry(t, row) : UINT64_MAX;

	if (budget_work(t->file->tm->budget, m->symbol_count, ERR_IGNORED))
		return 0;
	for (size_t i = 0; i < m->symbol_count; i++) {
		uint64_t entry = m->bias + m->symbols[i].st_value;
		if (is_function(&m->symbols[i]) && entry > address && entry < best)
			best = entry;
	}
	return best != UINT64_MAX && elf_module_holds(m, address, best - address, PF_X) ? best : 0;
}
