/* SPDX-License-Identifier: MIT */
/*
 * Instructions are words at multiples of four. An address is made by two of them: adrp makes that of a page, add or the
 * distance of a load the rest. They are followed in the order in which they stand, until the register is changed.
 */
#pragma once

#include "arch/aarch64/words.h"

#define MADE_REGISTERS 32u

/* Which registers hold an address that the code has made. */
struct made {
	uint64_t address[MADE_REGISTERS];
	uint32_t known; /* a bit for each */
};

static inline void made_put(struct made *m, unsigned number, uint64_t address)
{
	m->address[number] = address;
	m->known |= 1u << number;
}

/* What an instruction refers to by an address that the code has made; *whole: that address itself. */
static inline bool made_look(const struct made *m, uint32_t word, uint64_t address, uint64_t *place, bool *whole)
{
	struct word_access access;
	uint64_t number;
	bool page;

	*whole = true;
	if (word_makes_address(word, address, &page, place))
		return !page;
	const bool known = m->known >> word_from(word) & 1;
	if (known && word_adds(word, &number)) {
		*place = m->address[word_from(word)] + number;
		return true;
	}
	*whole = false;
	if (word_loads_near(word, address, place))
		return true;
	if (!known || !word_accesses(word, &access))
		return false;
	*place = m->address[word_from(word)] + (uint64_t)access.distance;
	return true;
}

/* The same, and what the registers hold then. */
static inline bool made_refers(struct made *m, uint32_t word, uint64_t address, uint64_t *place, bool *whole)
{
	const bool found = made_look(m, word, address, place, whole);
	bool page;
	uint64_t made;

	for (uint32_t left = m->known; left; left &= left - 1)
		if (word_changes(word, (unsigned)__builtin_ctz(left)))
			m->known &= ~(left & -left);
	if (word_makes_address(word, address, &page, &made))
		made_put(m, word_to(word), made);
	else if (found && *whole)
		made_put(m, word_to(word), *place);
	return found;
}
