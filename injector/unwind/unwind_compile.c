/* SPDX-License-Identifier: MIT */
/*
 * libdw splits the section into CIEs and FDEs; cfi_program.c runs them; rule_encode.c makes each state a
 * word. Functions come in the order of the object files, so their rows are collected first, then sorted and
 * joined, with explicit gaps.
 */
#include "unwind/unwind_compile.h"

#include <elfutils/libdw.h>
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/cfi_program.h"
#include "base/cleanup.h"
#include "base/grow.h"
#include "base/order.h"

/* Of the parts of a CIE, which are some ten bytes long: CIEs may overlap, so long ones would be read again and again.
 */
#define CIE_MAX 4096u

struct cie {
	uint64_t offset;
	uint32_t next;              /* with the same hash, as index + 1; 0: the last */
	struct cfi_program program; /* of the FDEs: alignments and encoding */
	struct frame_state initial;
	bool signal_frame;
	bool augmented; /* FDEs have augmentation data */
	bool usable;
};

struct function {
	uint32_t start;
	uint32_t end;
	uint32_t first; /* row */
	uint32_t count;
};

struct compiler {
	const struct unwind_source *source;
	Elf_Data data;
	struct cie *cies; /* all that FDEs have named, also what is none */
	size_t cie_count;
	uint32_t *cie_heads; /* by hash of the offset, as index + 1 */
	size_t cie_buckets;  /* a power of two */
	struct function *functions;
	size_t function_count;
	struct unwind_rows raw; /* rows of all functions, one after the other */
	uint32_t first;         /* row of the function at work */
	bool signal_frame;
	uint32_t damaged;
};

static const unsigned char ident[EI_NIDENT] = {
	ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT
};

/* Makes room for one row more. -ENOMEM: no row has changed. */
static int reserve_row(struct unwind_rows *rows)
{
	uint32_t capacity = rows->count ? rows->count * 2 : 1024, *more;

	if (rows->count < rows->capacity)
		return 0;
	more = capacity > rows->count ? reallocarray(rows->pc, capacity, sizeof *more) : NULL;
	if (!more)
		return -ENOMEM;
	rows->pc = more;
	more = reallocarray(rows->rule, capacity, sizeof *more);
	if (!more)
		return -ENOMEM;
	rows->rule = more;
	rows->capacity = capacity;
	return 0;
}

static int push_row(struct unwind_rows *rows, uint32_t pc, uint32_t rule)
{
	if (reserve_row(rows))
		return -ENOMEM;
	rows->pc[rows->count] = pc;
	rows->rule[rows->count++] = rule;
	return 0;
}

int unwind_rows_insert(struct unwind_rows *rows, uint32_t i, uint32_t pc, uint32_t rule)
{
	size_t after = rows->count - i - 1;

	if (reserve_row(rows))
		return -ENOMEM;
	memmove(rows->pc + i + 2, rows->pc + i + 1, after * sizeof *rows->pc);
	memmove(rows->rule + i + 2, rows->rule + i + 1, after * sizeof *rows->rule);
	rows->pc[i + 1] = pc;
	rows->rule[i + 1] = rule;
	rows->count++;
	return 0;
}

void unwind_rows_done(struct unwind_rows *rows)
{
	free(rows->pc);
	free(rows->rule);
	*rows = (struct unwind_rows){ 0 };
}

/* ---- CIEs ---- */

/*
 * Reads the augmentation: the encoding of FDE pointers, signal frames. False: something that changes the
 * format.
 */
static bool read_augmentation(const Dwarf_CIE *in, struct cie *out)
{
	struct cfi_reader r = { in->augmentation_data, in->augmentation_data + in->augmentation_data_size, false };
	const char *letter = in->augmentation ? in->augmentation : "";

	if (*letter == 0)
		return true;
	if (*letter++ != 'z')
		return false;
	out->augmented = true;
	for (; *letter && !r.bad; letter++) {
		switch (*letter) {
		case 'R': out->program.pointer_encoding = (uint8_t)cfi_reader_unsigned(&r, 1); break;
		case 'L': cfi_reader_unsigned(&r, 1); break;
		case 'S': out->signal_frame = true; break;
		case 'B': break;
		case 'P': {
			uint8_t encoding = (uint8_t)cfi_reader_unsigned(&r, 1);
			cfi_reader_pointer(&r, encoding & 0x0f, 0); /* the personality routine: only passed over */
			break;
		}
		default: return true; /* by 'z' the rest can be passed over */
		}
	}
	return !r.bad;
}

static uint32_t *cie_head(const struct compiler *c, uint64_t offset)
{
	return &c->cie_heads[(offset * 0x9e3779b97f4a7c15ull >> 32) & (c->cie_buckets - 1)];
}

/* Twice the buckets, when there is a CIE for each. */
static bool grow_buckets(struct compiler *c)
{
	size_t count = c->cie_buckets ? 2 * c->cie_buckets : 64;

	if (c->cie_count < c->cie_buckets)
		return true;
	uint32_t *heads = calloc(count, sizeof *heads);
	if (!heads)
		return false;
	free(c->cie_heads);
	c->cie_heads = heads;
	c->cie_buckets = count;
	for (size_t i = 0; i < c->cie_count; i++) {
		uint32_t *head = cie_head(c, c->cies[i].offset);
		c->cies[i].next = *head;
		*head = (uint32_t)i + 1;
	}
	return true;
}

static struct cie *add_cie(struct compiler *c, uint64_t offset)
{
	if (!grow_buckets(c) || !grow_list(c->cies, c->cie_count))
		return NULL;
	struct cie *out = &c->cies[c->cie_count++];
	uint32_t *head = cie_head(c, offset);
	*out = (struct cie){ .offset = offset, .next = *head };
	*head = (uint32_t)c->cie_count;
	return out;
}

static void read_cie(struct cie *out, const Dwarf_CIE *in)
{
	out->program = (struct cfi_program){ .code = in->initial_instructions,
		                             .end = in->initial_instructions_end,
		                             .code_align = in->code_alignment_factor,
		                             .data_align = in->data_alignment_factor };
	int error;
	out->usable = (size_t)(in->initial_instructions_end - in->initial_instructions) <= CIE_MAX &&
	              in->augmentation_data_size <= CIE_MAX && in->return_address_register == return_address_number &&
	              in->initial_instructions && read_augmentation(in, out) &&
	              cfi_program_run(&out->program, &out->initial, NULL, NULL, &error);
}

/* The CIE at an offset, usable or not. Each place is read once, whatever is there. NULL: no memory. */
static const struct cie *find_cie(struct compiler *c, uint64_t offset)
{
	Dwarf_CFI_Entry entry;
	Dwarf_Off next;

	for (uint32_t i = c->cie_buckets ? *cie_head(c, offset) : 0; i; i = c->cies[i - 1].next)
		if (c->cies[i - 1].offset == offset)
			return &c->cies[i - 1];
	struct cie *cie = add_cie(c, offset);
	if (cie && offset < c->source->bytes &&
	    dwarf_next_cfi(ident, &c->data, !c->source->debug_frame, offset, &next, &entry) == 0 &&
	    dwarf_cfi_cie_p(&entry))
		read_cie(cie, &entry.cie);
	return cie;
}

/* ---- FDEs ---- */

static int on_stretch(void *context, uint64_t from, uint64_t to, const struct frame_state *state)
{
	struct compiler *c = context;
	uint32_t rule = rule_encode_word(state, c->signal_frame);

	(void)to;
	if (c->raw.count > c->first && c->raw.rule[c->raw.count - 1] == rule)
		return 0;
	return push_row(&c->raw, (uint32_t)(from - c->source->exec_start), rule);
}

static int add_function(struct compiler *c, uint64_t start, uint64_t end)
{
	if (!grow_list(c->functions, c->function_count))
		return -ENOMEM;
	c->functions[c->function_count++] = (struct function){ .start = (uint32_t)(start - c->source->exec_start),
		                                               .end = (uint32_t)(end - c->source->exec_start),
		                                               .first = c->first,
		                                               .count = c->raw.count - c->first };
	return 0;
}

/* Reads where the function is and positions r after it, at its instructions. False: damaged. */
static bool read_extent(const struct compiler *c, const struct cie *cie, struct cfi_reader *r, uint64_t *start,
                        uint64_t *length)
{
	const struct unwind_source *s = c->source;
	uint8_t encoding = cie->program.pointer_encoding;

	*start = cfi_reader_pointer(r, encoding, s->address + (uint64_t)(r->at - s->data));
	*length = cfi_reader_pointer(r, encoding & 0x0f, 0);
	if (cie->augmented) {
		uint64_t skip = cfi_reader_uleb(r);
		if (skip > (size_t)(r->end - r->at))
			return false;
		r->at += skip;
	}
	return !r->bad;
}

/* 0, or -ENOMEM; a damaged entry is counted and leaves nothing. */
static int compile_fde(struct compiler *c, const Dwarf_FDE *fde)
{
	const struct unwind_source *s = c->source;
	const struct cie *cie = find_cie(c, fde->CIE_pointer);
	struct cfi_reader r = { fde->start, fde->end, false };
	uint64_t start, length;
	int error = 0;

	if (!cie)
		return -ENOMEM;
	if (!cie->usable || !read_extent(c, cie, &r, &start, &length) || start < s->exec_start ||
	    start >= s->exec_end || length > s->exec_end - start) {
		c->damaged++;
		return 0;
	}
	if (length == 0)
		return 0;
	struct cfi_program program = cie->program;
	struct frame_state state = cie->initial;
	program.code = r.at;
	program.end = r.end;
	program.code_address = s->address + (uint64_t)(r.at - s->data);
	program.location = start;
	program.location_end = start + length;
	program.initial = &cie->initial;
	c->first = c->raw.count;
	c->signal_frame = cie->signal_frame;
	if (!cfi_program_run(&program, &state, on_stretch, c, &error)) {
		c->raw.count = c->first;
		c->damaged++;
		return error;
	}
	return add_function(c, start, start + length);
}

static int read_section(struct compiler *c)
{
	Dwarf_CFI_Entry entry;
	Dwarf_Off offset = 0, next = 0;
	int r = 0;

	/* 1 is the end, -1 damage that hides where the next entry begins unless next has moved on. */
	for (int got = 0; !r && got != 1; offset = next) {
		next = offset;
		got = offset < c->source->bytes
		              ? dwarf_next_cfi(ident, &c->data, !c->source->debug_frame, offset, &next, &entry)
		              : 1;
		if (got < 0 && next <= offset)
			break;
		if (got < 0)
			c->damaged++;
		else if (got == 0 && !dwarf_cfi_cie_p(&entry))
			r = compile_fde(c, &entry.fde);
	}
	return r;
}

/* ---- joining ---- */

ORDER_BY_BOTH(compare_functions, struct function, start, end);

static int join_row(struct unwind_rows *out, uint32_t pc, uint32_t rule)
{
	if (out->count && out->rule[out->count - 1] == rule)
		return 0;
	return push_row(out, pc, rule);
}

/* Where functions overlap, the one that begins first holds. */
static int join(struct compiler *c, struct unwind_rows *out)
{
	uint32_t length = (uint32_t)(c->source->exec_end - c->source->exec_start), at = 0;
	int r = 0;

	qsort(c->functions, c->function_count, sizeof *c->functions, compare_functions);
	for (size_t i = 0; i < c->function_count && !r; i++) {
		const struct function *f = &c->functions[i];

		if (f->end <= at)
			continue;
		if (f->start > at)
			r = join_row(out, at, UNWIND_NONE);
		for (uint32_t k = f->first; k < f->first + f->count && !r; k++) {
			uint32_t pc = c->raw.pc[k] < at ? at : c->raw.pc[k];
			bool hidden = k + 1 < f->first + f->count && c->raw.pc[k + 1] <= at;
			if (!hidden)
				r = join_row(out, pc, c->raw.rule[k]);
		}
		at = f->end;
	}
	if (!r && at < length)
		r = join_row(out, at, UNWIND_NONE);
	return r;
}

int unwind_compile(struct unwind_rows *rows, const struct unwind_source *source, struct err *e)
{
	struct compiler c = { .source = source };
	struct unwind_rows out = { 0 };
	int r = 0;

	if (source->exec_end - source->exec_start > UINT32_MAX)
		return err_set(e, E2BIG, "its code is larger than 4 GiB");
	c.data = (Elf_Data){ .d_buf = (void *)(uintptr_t)source->data,
		             .d_type = ELF_T_BYTE,
		             .d_version = EV_CURRENT,
		             .d_size = source->bytes };
	if (source->bytes && source->exec_end > source->exec_start)
		r = read_section(&c);
	if (!r && c.function_count)
		r = join(&c, &out);
	out.fdes = (uint32_t)c.function_count;
	out.damaged = c.damaged;
	unwind_rows_done(&c.raw);
	free(c.cies);
	free(c.cie_heads);
	free(c.functions);
	if (r) {
		unwind_rows_done(&out);
		return err_set(e, -r, "no memory for unwind rows");
	}
	*rows = out;
	return 0;
}

/* ---- what to look up ---- */

/* The last row at or before pc. */
bool unwind_rows_sound(const struct unwind_rows *rows, uint64_t exec_bytes)
{
	bool sound = rows->count > 0 && rows->pc[0] == 0;

	for (uint32_t i = 0; i < rows->count && sound; i++)
		sound = rows->pc[i] < exec_bytes && (i == 0 || rows->pc[i] > rows->pc[i - 1]) &&
		        UNWIND_KIND(rows->rule[i]) <= unwind_kind_last;
	return sound;
}

uint32_t unwind_rows_until(const struct unwind_rows *rows, uint64_t pc)
{
	uint32_t low = 0, high = rows->count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		if (rows->pc[mid] <= pc)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

uint32_t unwind_rows_find(const struct unwind_rows *rows, uint32_t pc)
{
	uint32_t count = unwind_rows_until(rows, pc);

	return count ? rows->rule[count - 1] : UNWIND_NONE;
}

void unwind_rows_census(const struct unwind_rows *rows, uint32_t exec_bytes, uint64_t bytes_by_kind[16])
{
	memset(bytes_by_kind, 0, 16 * sizeof *bytes_by_kind);
	if (rows->count == 0)
		bytes_by_kind[UNWIND_NONE] = exec_bytes;
	for (uint32_t i = 0; i < rows->count; i++) {
		uint32_t end = i + 1 < rows->count ? rows->pc[i + 1] : exec_bytes;
		bytes_by_kind[UNWIND_KIND(rows->rule[i])] += end > rows->pc[i] ? end - rows->pc[i] : 0;
	}
}
