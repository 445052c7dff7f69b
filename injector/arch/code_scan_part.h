/* SPDX-License-Identifier: MIT */
/*
 * What a machine does for the code scan (code_scan.h), and what it is given for that. Besides, it defines there
 * code_entry_call_only(), code_scan_stub_entry() and code_scan_branches().
 */
#pragma once

#include "arch/code_scan.h"

/* How many bytes before and behind its first one a reference may reach over; what one that is looked up costs of the
 * budget. */
struct code_scan_reach {
	size_t before, after;
	unsigned look_up_cost;
};
extern const struct code_scan_reach code_scan_reach;

/*
 * The references that begin at code[from … to - 1], of bytes that are at address in the target, as far as they go;
 * there is a GOT entry. Counts them in scan->entries and scan->looked_up, and adds the stubs.
 */
int code_scan_part(struct code_scan *scan, const uint8_t *code, size_t bytes, size_t from, size_t to, uint64_t address,
                   struct err *e) WARN_UNUSED;
/* Of code_scan_calls(): those through a GOT entry. */
void code_scan_loads(const struct code_scan *scan, const uint8_t *code, size_t bytes, uint64_t address, code_call_fn fn,
                     void *context);

/* The index of a GOT entry; SIZE_MAX if the address is none. */
size_t code_scan_index(const struct code_scan *scan, uint64_t address);
/* -ENOMEM */
int code_scan_add_stub(struct code_scan *scan, uint64_t address, size_t entry, struct err *e) WARN_UNUSED;
