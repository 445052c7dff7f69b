/* SPDX-License-Identifier: MIT */
#include "arch/word_references.h"

#include "arch/code.h"

static void note(void *context, enum reference_kind kind, uint64_t destination)
{
	struct word_references *r = context;

	if (kind == REFERENCE_DATA && !word_references_has(r, destination) && r->count < WORD_REFERENCES_MAX)
		r->list[r->count++] = destination;
}

/* What is behind a word that is loaded is not followed. */
void word_references_find(struct word_references *r, const uint8_t *code, size_t bytes, uint64_t address,
                          word_read_fn read, void *context)
{
	(void)read, (void)context;
	r->count = 0;
	code_references(code, bytes, address, false, note, r);
}

bool word_references_has(const struct word_references *r, uint64_t address)
{
	for (unsigned i = 0; i < r->count; i++)
		if (r->list[i] == address)
			return true;
	return false;
}
