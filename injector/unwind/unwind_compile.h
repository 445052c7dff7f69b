/* SPDX-License-Identifier: MIT */
/*
 * Compiles call frame information into rows of include/unwind_table.h. A pure function of the module's
 * contents: pcs are relative to the start of its executable part, so rows may be kept and used again
 * (unwind_cache.h).
 */
#pragma once

#include "elf/module_file.h"
#include "unwind_table.h"

struct cache_key;
struct unwind_cache;

struct unwind_rows {
	uint32_t *pc;   /* ascending, first is 0 unless count is 0 */
	uint32_t *rule; /* UNWIND_RULE words; neighbours differ */
	uint32_t count;
	uint32_t capacity;
	uint32_t fdes;    /* functions seen */
	uint32_t damaged; /* FDEs passed over because they could not be read or lie outside */
};

/*
 * Call frame information as bytes. Addresses may be link-time or run-time ones, as long as all are of one
 * kind.
 */
struct unwind_source {
	const uint8_t *data;
	size_t bytes;
	uint64_t address;    /* of data, for pc-relative pointers */
	bool debug_frame;    /* the format of .debug_frame */
	uint64_t exec_start; /* the code that the rows are for */
	uint64_t exec_end;
};

/*
 * Compiles. Damaged entries are skipped and counted; the section ends where its lengths end to make sense. No
 * FDE at all gives count 0. unwind_rows_done afterwards. -ENOMEM; -E2BIG: code of 4 GiB or more.
 */
int unwind_compile(struct unwind_rows *rows, const struct unwind_source *source, struct err *e) WARN_UNUSED;

/* The information of a module before it is compiled. */
struct unwind_input {
	const struct module_file *file;
	uint8_t *data; /* .eh_frame by PT_GNU_EH_FRAME, from file or memory; NULL: not found so */
	size_t bytes;
	uint64_t address;
	bool by_section; /* out of unwind_input_compile: the rows are of a section that it found by name */
};

/* Looks for it. Nothing is parsed but the 12 bytes of .eh_frame_hdr. Charged to the budget of the file's memory. */
void unwind_input_read(struct unwind_input *in, const struct module_file *f);
void unwind_input_done(struct unwind_input *in);
/* What its rows are kept under (unwind_cache.h). False: nowhere. */
bool unwind_input_key(const struct unwind_input *in, struct cache_key *key);
/* Compiles it; without data or rows what sections of the file's .eh_frame or .debug_frame are found by name. No
 * information is not an error: count 0. */
int unwind_input_compile(struct unwind_rows *rows, struct unwind_input *in, struct err *e) WARN_UNUSED;

/* The three together; rows are taken from the cache (may be NULL) or stored there. */
int unwind_compile_module(struct unwind_rows *rows, const struct module_file *f, struct unwind_cache *cache,
                          struct err *e) WARN_UNUSED;
/* One row more, at pc and after row i. -ENOMEM: none. */
int unwind_rows_insert(struct unwind_rows *rows, uint32_t i, uint32_t pc, uint32_t rule) WARN_UNUSED;
void unwind_rows_done(struct unwind_rows *rows);

/* May they be published? Ascending, from the start of code that has exec_bytes, known kinds. False for no rows. */
bool unwind_rows_sound(const struct unwind_rows *rows, uint64_t exec_bytes);

/* How many rows begin at pc or before. */
uint32_t unwind_rows_until(const struct unwind_rows *rows, uint64_t pc);
/* The rule in force at pc (relative); UNWIND_NONE outside. */
uint32_t unwind_rows_find(const struct unwind_rows *rows, uint32_t pc);

/* For each unwind kind, how many bytes of code have it. */
void unwind_rows_census(const struct unwind_rows *rows, uint32_t exec_bytes, uint64_t bytes_by_kind[16]);
