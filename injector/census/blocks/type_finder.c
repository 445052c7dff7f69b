/* SPDX-License-Identifier: MIT */
#include "census/blocks/type_finder.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/address_bits.h"
#include "base/grow.h"
#include "census/blocks/type_names.h"

#define LEAST_TEXT 6u /* characters */
#define LEAST_POINTERS 4u
#define TYPES_MAX 50000u

/* The number of a type; its figures are zeros if it is new. */
static int number_of(struct block_types *t, enum type_source source, const char *name, uint32_t *number, struct err *e)
{
	const uint32_t before = t->names.count;
	char text[TYPE_NAME + TYPE_PREFIX + 1];

	snprintf(text, sizeof text, "%c%s", '0' + (int)source, name);
	if (before >= TYPES_MAX && !string_table_find(&t->names, text, number)) {
		t->full = true;
		*number = 0;
		return 0;
	}
	if (string_table_add(&t->names, text, number))
		return err_set(e, ENOMEM, "no memory for the types of its blocks");
	if (*number < before)
		return 0;
	if (!grow_list(t->list, before))
		return err_set(e, ENOMEM, "no memory for the types of its blocks");
	t->list[before] = (struct type_figures){ .source = source };
	return 0;
}

typedef bool (*type_of_fn)(struct census_memory *memory, uint64_t word, char name[TYPE_NAME]);

/* By a word that leads to a type, which is looked up once. *number: 0 if it leads to none. */
static int by_word(struct type_finder *f, uint64_t word, type_of_fn type_of, enum type_source source, uint32_t *number,
                   struct err *e)
{
	struct block_types *t = f->types;
	const uint64_t key = word | (source == TYPE_PYTHON); /* types are aligned */
	const uint32_t *known = map_find(&t->by_word, key);
	uint64_t *none = &f->none[map_mix(key) % TYPE_NONE_WORDS];
	char name[TYPE_NAME];

	*number = known ? *known : 0;
	if (known || *none == key)
		return 0;
	if (t->by_word.count >= TYPES_MAX || !type_of(f->memory, word, name)) {
		*none = key;
		return 0;
	}
	int rc = number_of(t, source, name, number, e);
	if (rc == 0 && map_put(&t->by_word, key, *number))
		rc = err_set(e, ENOMEM, "no memory for the types of its blocks");
	return rc;
}

/* An object, or one behind the header of the collector, or behind that and the words for its dict. */
static int by_python(struct type_finder *f, const uint64_t *words, size_t count, uint32_t *number, struct err *e)
{
	int rc = 0;

	for (size_t k = 1; k <= 5 && k < count && !*number && rc == 0; k += 2)
		if (type_name_may_follow(words[k - 1]) && words[k] % 8 == 0 && words[k] >> ADDRESS_BITS == 0 &&
		    words[k] >= CENSUS_PAGE)
			rc = by_word(f, words[k], type_name_of_python, TYPE_PYTHON, number, e);
	return rc;
}

static bool is_pointer(const struct type_finder *f, uint64_t word)
{
	return word >> 16 && word >> ADDRESS_BITS == 0 && glibc_heap_segment(&f->heap->glibc, word);
}

/* An address in the heap may look like six characters with their end. */
static bool is_text(const struct type_finder *f, const uint8_t *data, size_t bytes, uint64_t first)
{
	size_t n = 0;

	while (n < bytes && (isprint(data[n]) || isspace(data[n])))
		n++;
	return n >= LEAST_TEXT && (n == bytes || !data[n]) && (n >= sizeof first || !is_pointer(f, first));
}

static bool is_pointers(const struct type_finder *f, const uint64_t *words, size_t count)
{
	size_t pointers = 0, zeros = 0;

	for (size_t i = 0; i < count; i++) {
		zeros += !words[i];
		pointers += is_pointer(f, words[i]);
	}
	return pointers >= LEAST_POINTERS && (pointers + zeros) * 10 >= count * 9;
}

static bool is_zeros(const uint8_t *data, size_t bytes)
{
	return bytes && !data[0] && !memcmp(data, data + 1, bytes - 1);
}

int type_finder_find(struct type_finder *f, const uint8_t *data, size_t have, uint32_t *found, struct err *e)
{
	uint64_t words[TYPE_LOOK_BYTES / 8] = { 0 };
	uint32_t number = 0;
	int rc = 0;

	have = have < TYPE_LOOK_BYTES ? have : TYPE_LOOK_BYTES;
	memcpy(words, data, have / 8 * 8);
	if (f->python)
		rc = by_python(f, words, have / 8, &number, e);
	if (rc == 0 && !number && have >= 8 && type_name_may_be_vtable(f->memory, words[0]))
		rc = by_word(f, words[0], type_name_of_vtable, TYPE_VTABLE, &number, e);
	if (rc == 0 && !number) {
		const char *content = is_zeros(data, have)               ? "zeros"
		                      : is_text(f, data, have, words[0]) ? "text"
		                      : is_pointers(f, words, have / 8)  ? "pointers"
		                                                         : NULL;
		rc = content ? number_of(f->types, TYPE_CONTENT, content, &number, e) : 0;
	}
	*found = number;
	return rc;
}

int type_finder_open(struct type_finder *f, struct block_types *types, const struct census_heap *heap,
                     struct census_memory *memory, struct err *e)
{
	uint32_t first;

	*f = (struct type_finder){ .types = types, .heap = heap, .memory = memory, .python = heap->pools.pools > 0 };
	return number_of(types, TYPE_UNNAMED, "not named", &first, e);
}
