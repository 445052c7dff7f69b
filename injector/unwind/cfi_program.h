/* SPDX-License-Identifier: MIT */
/*
 * Running the instructions of a CIE or FDE (DWARF 5, section 6.4.2).
 *
 * Why not libdw: dwarf_cfi_addrframe() finds the same rows but runs a function from its start again for each of its
 * addresses, which takes 5 times as long (libc 7.8 instead of 1.5 ms, libjvm 77 instead of 16, libLLVM 255 instead of
 * 48) and, where a hostile module has one function of many rows, the square of their number.
 */
#pragma once

#include "arch/rule_encode.h"

/* Bytes that are consumed from the left; once a read goes beyond the end, bad stays set and reads give 0. */
struct cfi_reader {
	const uint8_t *at;
	const uint8_t *end;
	bool bad;
};

uint64_t cfi_reader_unsigned(struct cfi_reader *r, unsigned bytes); /* little-endian, 1 … 8 bytes */
uint64_t cfi_reader_uleb(struct cfi_reader *r);
int64_t cfi_reader_sleb(struct cfi_reader *r);

/*
 * A pointer in one of the DW_EH_PE encodings; at_address is the address of r->at, for pc-relative ones.
 * Indirect pointers and those relative to anything else set bad.
 */
uint64_t cfi_reader_pointer(struct cfi_reader *r, uint8_t encoding, uint64_t at_address);

struct cfi_program {
	const uint8_t *code;
	const uint8_t *end;
	uint64_t code_align;
	int64_t data_align;
	uint8_t pointer_encoding; /* for DW_CFA_set_loc */
	uint64_t code_address;    /* address of code, for the same */
	uint64_t location;        /* where it starts to hold */
	uint64_t location_end;
	const struct frame_state *initial; /* what DW_CFA_restore goes back to; NULL in a CIE */
};

/* Called with each stretch of code [from, to) and the rules in force there, in order. -errno ends the run. */
typedef int (*cfi_stretch_fn)(void *context, uint64_t from, uint64_t to, const struct frame_state *state);

/* Runs it on *state; fn may be NULL. False: damaged, or what fn returned is in *error. */
bool cfi_program_run(const struct cfi_program *program, struct frame_state *state, cfi_stretch_fn fn, void *context,
                     int *error);
