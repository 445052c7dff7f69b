/* SPDX-License-Identifier: MIT */
/*
 * Which words of data a function reads, writes or calls through, as far as its instructions tell without being run: by
 * a distance from the instruction, by a plain address, or at a displacement from an address that the function has
 * loaded before, from a word (a GOT entry) or as a number. The instructions are read one after the other, as if none
 * jumped; so a reference may be missed or invented, and what is found wants another proof.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORD_REFERENCES_MAX 128u

struct word_references {
	uint64_t list[WORD_REFERENCES_MAX]; /* addresses, in no order, each once */
	unsigned count;
};

/* Reads a word of the process; false: it cannot be read. */
typedef bool (*word_read_fn)(void *context, uint64_t address, uint64_t *word);

void word_references_find(struct word_references *r, const uint8_t *code, size_t bytes, uint64_t address,
                          word_read_fn read, void *context);
bool word_references_has(const struct word_references *r, uint64_t address);
