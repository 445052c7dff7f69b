/* SPDX-License-Identifier: MIT */
/*
 * The start code of a static program, from its entry to the call that hands main to its C library: some ten
 * instructions without a condition (crt1.o of glibc and musl), or behind the loops in which a program relocates itself
 * (rcrt1.o of musl). They are not executed but read, with the registers as they will be, until a call or jump finds
 * main, argc and argv where the first three arguments are. What is not known here ends the reading: then nothing is
 * claimed.
 *
 * The address of main is made by four bytes of one instruction, by two instructions that follow each other, or by a
 * last one, which adds to what another has made or loads it from a table. Whoever exchanges these bytes has another
 * function run in main's place, with its arguments.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define START_CODE_BYTES 8

struct start_code {
	uint64_t main_address;
	uint64_t place; /* of the bytes that make it; all are in one page */
	unsigned length;
	uint8_t bytes[START_CODE_BYTES]; /* what they are */
	/* Of the machine: from where they count, and whether also backwards. */
	uint64_t base;
	bool is_signed;
};

struct start_arguments {
	uint64_t entry, sp; /* of the thread, which has executed nothing yet */
	uint64_t argc, argv;
};

/* mem: /proc/PID/mem. False: it hands main on in no way that is known. */
bool start_code_read(struct start_code *code, int mem, const struct start_arguments *arguments);
/* What the bytes would be for another function; false: it is too far away. */
bool start_code_for(const struct start_code *code, uint64_t function, uint8_t bytes[START_CODE_BYTES]);
