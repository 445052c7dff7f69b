/* SPDX-License-Identifier: MIT */
/* What is the same on each machine: the set of GOT entries, the stubs that were found, the walk over a module's code.
 */
#include "arch/code_scan_part.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "base/sorted.h"
#include "base/order.h"

#define CHUNK_BYTES (1u << 20)

/* ---- the set of GOT entries ---- */

ORDER_BY(compare_entries, struct code_entry, address);

ORDER_BY(compare_stubs, struct code_stub, address);

size_t code_scan_index(const struct code_scan *scan, uint64_t address)
{
	size_t low = SORTED_BELOW(scan->entries, scan->entry_count, address, address);

	return low < scan->entry_count && scan->entries[low].address == address ? low : SIZE_MAX;
}

const struct code_entry *code_scan_entry(const struct code_scan *scan, uint64_t address)
{
	size_t i = code_scan_index(scan, address);

	return i == SIZE_MAX ? NULL : &scan->entries[i];
}

int code_scan_add_stub(struct code_scan *scan, uint64_t address, size_t entry, struct err *e)
{
	if (!grow_list(scan->stubs, scan->stub_count))
		return err_set(e, ENOMEM, "no memory for the code scan");
	scan->stubs[scan->stub_count++] = (struct code_stub){ address, (uint32_t)entry };
	return 0;
}

/* Of the instructions from `from` on, below `to`; the others are what they reach over. */
static int scan_part(struct code_scan *scan, const uint8_t *code, size_t bytes, size_t from, size_t to,
                     uint64_t address, struct err *e)
{
	if (!scan->entry_count)
		return 0;
	scan->bytes += to - from;
	return code_scan_part(scan, code, bytes, from, to, address, e);
}

int code_scan_bytes(struct code_scan *scan, const uint8_t *code, size_t bytes, uint64_t address, struct err *e)
{
	int r = scan_part(scan, code, bytes, 0, bytes, address, e);

	if (scan->stub_count)
		qsort(scan->stubs, scan->stub_count, sizeof *scan->stubs, compare_stubs);
	return r;
}

/* ---- a module ---- */

static int scan_segment(struct code_scan *scan, const struct module_file *f, uint64_t start, uint64_t bytes,
                        uint8_t *buffer, struct err *e)
{
	/* Chunks overlap by what a reference reaches over. */
	for (uint64_t done = 0; done < bytes;) {
		uint64_t before = done < code_scan_reach.before ? done : code_scan_reach.before;
		uint64_t part = bytes - done < CHUNK_BYTES ? bytes - done : CHUNK_BYTES;
		uint64_t left = bytes - done - part,
			 after = left < code_scan_reach.after ? left : code_scan_reach.after;
		uint64_t address = start + done - before;
		uint64_t looked_up = scan->looked_up, stubs = scan->stub_count;
		int r = module_file_read(f, address, buffer, before + part + after, e);

		r = r ?: scan_part(scan, buffer, before + part + after, before, before + part, address, e);
		r = r ?: budget_work(f->tm->budget, code_scan_reach.look_up_cost * (scan->looked_up - looked_up), e);
		r = r ?: budget_take(f->tm->budget, 2 * sizeof *scan->stubs * (scan->stub_count - stubs), e);
		if (r)
			return r;
		done += part;
	}
	return 0;
}

static int scan_segments(struct code_scan *scan, const struct module_file *f, struct err *e)
{
	const struct elf_module *m = f->module;
	AUTO_FREE uint8_t *buffer = malloc(code_scan_reach.before + CHUNK_BYTES + code_scan_reach.after);

	if (!buffer)
		return err_set(e, ENOMEM, "no memory for the code scan");
	for (size_t i = 0; i < m->phdr_count; i++) {
		const Elf64_Phdr *p = &m->phdrs[i];
		int r = p->p_type == PT_LOAD && p->p_flags & PF_X
		                ? scan_segment(scan, f, m->bias + p->p_vaddr, p->p_filesz, buffer, e)
		                : 0;
		if (r)
			return r;
	}
	return 0;
}

int code_scan_module(struct code_scan *scan, const struct module_file *f, const uint64_t *entries, size_t count,
                     struct err *e)
{
	struct code_scan out = { 0 };

	out.entries = calloc(count + 1, sizeof *out.entries);
	if (!out.entries)
		return err_set(e, ENOMEM, "no memory for the code scan");
	for (size_t i = 0; i < count; i++)
		out.entries[i].address = entries[i];
	qsort(out.entries, count, sizeof *out.entries, compare_entries);
	for (size_t i = 0; i < count; i++)
		if (i == 0 || out.entries[i].address != out.entries[out.entry_count - 1].address)
			out.entries[out.entry_count++].address = out.entries[i].address;
	int r = count ? scan_segments(&out, f, e) : 0;
	if (r) {
		code_scan_done(&out);
		return r;
	}
	if (out.stub_count)
		qsort(out.stubs, out.stub_count, sizeof *out.stubs, compare_stubs);
	*scan = out;
	return 0;
}

void code_scan_done(struct code_scan *scan)
{
	free(scan->entries);
	free(scan->stubs);
	*scan = (struct code_scan){ 0 };
}

/* ---- bodies ---- */

struct branch_to_entry {
	const struct code_scan *scan;
	code_call_fn fn;
	void *context;
};

static void branch_to_entry(void *context, uint64_t destination)
{
	const struct branch_to_entry *b = context;
	uint32_t entry;

	if (code_scan_stub_entry(b->scan, destination, &entry))
		b->fn(b->context, entry);
}

void code_scan_calls(const struct code_scan *scan, const uint8_t *code, size_t bytes, uint64_t address, code_call_fn fn,
                     void *context)
{
	struct branch_to_entry b = { scan, fn, context };

	code_scan_branches(code, bytes, address, branch_to_entry, &b);
	code_scan_loads(scan, code, bytes, address, fn, context);
}
