/* SPDX-License-Identifier: MIT */
/*
 * The payload's own state that more than one of its modules uses: where dump and tables are mapped, the switch, and the
 * rate. Written by control.c while no hook runs, but for the switch, which clock.c ends too, and for the layout of
 * Python, which memattach may write later; hooks read it.
 *
 * Objects with PAYLOAD_PAGES fill whole pages of .bss, so that the pages can be given back; with WIPED_PAGES they are
 * side by side, so that those which are wiped in forked children (control.c) are one mapping, as a fork copies each.
 * Terms: docs/glossary.md
 */
#pragma once

#include <stdint.h>

#include "dump_format.h"
#include "java_layout.h"
#include "python_layout.h"

#define PAGE_BYTES 4096u
#define PAYLOAD_PAGES __attribute__((aligned(PAGE_BYTES)))
#define WIPED_PAGES PAYLOAD_PAGES __attribute__((section(".bss.wiped")))
#define HIDDEN __attribute__((visibility("hidden")))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

struct payload_state {
	struct dump_header *dump;
	uint64_t dump_bytes;
	const uint8_t *tables;
	uint64_t tables_bytes;
	uint64_t rate_bytes; /* the least; dump->rate_bytes may be more */
	uint64_t seed;
	uint64_t usable_size; /* address of malloc_usable_size, 0 none */
	uint32_t tid_offset;
	uint32_t has_python; /* (atomic) 1: Python frames are recorded; in the same line as what comes before */
	struct python_layout python;
	struct java_layout java;
};

extern struct payload_state payload HIDDEN;
/* 1 while recording. Read by hooks.S; the first word of a page that is wiped in forked children. */
extern uint32_t payload_switch HIDDEN;
