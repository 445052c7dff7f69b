/* SPDX-License-Identifier: MIT */
/*
 * The code of a function, followed from where it is entered: each instruction is given once, in no order that matters.
 * Who follows it says where it goes on.
 */
#pragma once

#include "arch/instruction.h"
#include "elf/module_file.h"

struct function_body {
	uint8_t *code;
	uint8_t *seen;  /* per byte: an instruction was taken from here */
	uint32_t *todo; /* from the address */
	size_t todo_count;
	uint64_t address, bytes;
};

/* False: it cannot be read, or there is no memory. function_body_done in any case. */
bool function_body_read(struct function_body *b, const struct module_file *file, uint64_t address, uint64_t bytes);
void function_body_done(struct function_body *b);

/* An address where it goes on; outside of the function, or known already: nothing happens. */
void function_body_add(struct function_body *b, uint64_t address);
/* The next instruction to look at. False: there is none, or it cannot be decoded (b->todo_count tells: it stays). */
bool function_body_next(struct function_body *b, struct instruction *in);
