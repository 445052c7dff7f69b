/* SPDX-License-Identifier: MIT */
#include "allocators/function_table.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/cfi_program.h"
#include "base/cleanup.h"

#define HEAD_MAX 32u
#define FDE_HEAD 18u /* length, CIE, entry, bytes, length of the augmentation data, first instruction */
#define TABLE_ENCODING (DW_EH_PE_datarel | DW_EH_PE_sdata4)
#define PC_ENCODING (DW_EH_PE_pcrel | DW_EH_PE_sdata4)

/* The head of .eh_frame_hdr: version, three encodings, where .eh_frame is, the number of rows. */
static uint64_t rows_address(const struct module_file *file, size_t *count)
{
	const struct elf_table *hdr = &file->module->eh_frame_hdr;
	uint8_t head[HEAD_MAX];
	struct err ignored;
	uint64_t bytes = hdr->bytes < sizeof head ? hdr->bytes : sizeof head;

	if (bytes < 12 || module_file_read(file, hdr->address, head, bytes, &ignored) || head[0] != 1 ||
	    head[3] != TABLE_ENCODING)
		return 0;
	struct cfi_reader r = { head + 4, head + bytes, false };
	cfi_pointer(&r, head[1], hdr->address + 4);
	uint64_t rows = cfi_pointer(&r, head[2], hdr->address + (uint64_t)(r.at - head));
	uint64_t used = (uint64_t)(r.at - head);
	if (r.bad || rows > (hdr->bytes - used) / 8)
		return 0;
	*count = rows;
	return hdr->address + used;
}

void function_table_open(struct function_table *t, const struct module_file *file)
{
	struct err ignored;
	size_t count = 0;
	uint64_t address = rows_address(file, &count);

	*t = (struct function_table){ .file = file };
	if (!address || budget_fits(file->tm->budget, 8 * count, &ignored))
		return;
	AUTO_FREE int32_t *rows = calloc(count + 1, 8);
	if (!rows || module_file_read(file, address, rows, 8 * count, &ignored))
		return;
	t->rows = steal_pointer(&rows);
	t->count = count;
}

void function_table_close(struct function_table *t)
{
	free(t->rows);
	*t = (struct function_table){ 0 };
}

static uint64_t row_entry(const struct function_table *t, size_t i)
{
	return t->file->module->eh_frame_hdr.address + (uint64_t)(int64_t)t->rows[2 * i];
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

/* The description of a row: only in the encoding that compilers use, which the entry itself proves. r is after it. */
static bool description_open(struct cfi_reader *r, uint8_t fde[FDE_HEAD], const struct function_table *t, size_t row)
{
	uint64_t place = t->file->module->eh_frame_hdr.address + (uint64_t)(int64_t)t->rows[2 * row + 1];
	struct err ignored;

	if (!elf_module_holds(t->file->module, place, FDE_HEAD, 0) ||
	    module_file_read(t->file, place, fde, FDE_HEAD, &ignored))
		return false;
	*r = (struct cfi_reader){ fde + 8, fde + FDE_HEAD, false };
	return cfi_pointer(r, PC_ENCODING, place + 8) == row_entry(t, row);
}

static uint64_t described_bytes(const struct function_table *t, size_t row)
{
	uint8_t fde[FDE_HEAD];
	struct cfi_reader r;

	return description_open(&r, fde, t, row) ? cfi_unsigned(&r, 4) : 0;
}

bool function_is_part(const struct function_table *t, uint64_t address)
{
	size_t row = rows_below(t, address);
	uint8_t fde[FDE_HEAD];
	struct cfi_reader r;

	if (row == t->count || row_entry(t, row) != address || !description_open(&r, fde, t, row))
		return false;
	cfi_unsigned(&r, 4);
	/* Of augmentation data only a short length is expected, none follow in C. */
	uint64_t augmentation = cfi_unsigned(&r, 1), first = augmentation == 0 ? cfi_unsigned(&r, 1) : 0;
	return !r.bad && (first == DW_CFA_def_cfa_offset || first == DW_CFA_def_cfa);
}

uint64_t function_bytes(const struct function_table *t, uint64_t address, uint64_t symbol_bytes)
{
	size_t row = rows_below(t, address);
	uint64_t bytes = symbol_bytes;

	/* The larger one: code that is taken for a part of it and is none can only make the answer more careful. */
	uint64_t described = row < t->count && row_entry(t, row) == address ? described_bytes(t, row) : 0;
	if (described > bytes)
		bytes = described;
	return elf_module_holds(t->file->module, address, bytes, PF_X) ? bytes : 0;
}

bool function_around(const struct function_table *t, uint64_t address, uint64_t *start, uint64_t *bytes)
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

uint64_t function_before(const struct function_table *t, uint64_t address)
{
	const struct elf_module *m = t->file->module;
	struct err ignored;
	size_t row = rows_below(t, address);
	uint64_t best = row ? row_entry(t, row - 1) : 0;

	if (budget_work(t->file->tm->budget, m->symbol_count, &ignored))
		return 0;
	for (size_t i = 0; i < m->symbol_count; i++) {
		uint64_t entry = m->bias + m->symbols[i].st_value;
		if (is_function(&m->symbols[i]) && entry < address && entry > best)
			best = entry;
	}
	return best && elf_module_holds(m, best, address - best, PF_X) ? best : 0;
}

uint64_t function_after(const struct function_table *t, uint64_t address)
{
	const struct elf_module *m = t->file->module;
	struct err ignored;
	size_t row = rows_below(t, address + 1);
	uint64_t best = row < t->count ? row_entry(t, row) : UINT64_MAX;

	if (budget_work(t->file->tm->budget, m->symbol_count, &ignored))
		return 0;
	for (size_t i = 0; i < m->symbol_count; i++) {
		uint64_t entry = m->bias + m->symbols[i].st_value;
		if (is_function(&m->symbols[i]) && entry > address && entry < best)
			best = entry;
	}
	return best != UINT64_MAX && elf_module_holds(m, address, best - address, PF_X) ? best : 0;
}
