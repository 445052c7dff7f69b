/* SPDX-License-Identifier: MIT */
#include "census/blocks/type_names.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "arch/address_bits.h"

#define TEXT_BYTES 512u
#define META_DEPTH 4u /* of classes of classes */
#define TYPE_NAME_AT 24u
#define TYPE_FLAGS_AT 168u
#define SUBCLASS_OF_TYPE (1ull << 31) /* Py_TPFLAGS_TYPE_SUBCLASS */
#define ADDRESS_END (1ull << ADDRESS_BITS)
#define ADDRESS_LEAST 65536u

/* Of a module, or of what its loader has written. */
static const struct mapping *module_mapping(const struct census_memory *memory, uint64_t word)
{
	const struct mapping *m = word >= ADDRESS_LEAST && word < ADDRESS_END ? maps_find(memory->files.maps, word)
	                                                                      : NULL;

	return m && m->inode && !m->shared ? m : NULL;
}

static void append(char name[TYPE_NAME], const char *text, size_t length)
{
	const size_t used = strlen(name);

	snprintf(name + used, TYPE_NAME - used, "%.*s", (int)(length < TYPE_NAME ? length : TYPE_NAME), text);
}

/* A length and so many characters. What comes after them, or NULL. */
static const char *append_source_name(const char *at, char name[TYPE_NAME])
{
	size_t length = 0;

	for (; isdigit((unsigned char)*at) && length < TEXT_BYTES; at++)
		length = 10 * length + (size_t)(*at - '0');
	if (!length || strnlen(at, length) < length)
		return NULL;
	if (name[0])
		append(name, "::", 2);
	if (!strncmp(at, "_GLOBAL__N", 10))
		append(name, "(anonymous namespace)", 21);
	else
		append(name, at, length);
	return at + length;
}

/* What is between the brackets of a template is left out, and all that comes after it: it may refer to anything. */
bool type_name_demangle(const char *mangled, char name[TYPE_NAME])
{
	const bool nested = *mangled == 'N';
	const char *at = mangled + nested;
	unsigned parts = 0;

	name[0] = '\0';
	if (!strncmp(at, "St", 2)) {
		append(name, "std", 3);
		at += 2;
	}
	while (isdigit((unsigned char)*at) && (nested || !parts)) {
		at = append_source_name(at, name);
		if (!at)
			return false;
		parts++;
	}
	if (*at == 'I' && parts)
		append(name, "<…>", sizeof "<…>" - 1);
	else if (*at && !(nested && *at == 'E'))
		return false;
	return parts > 0;
}

bool type_name_may_be_vtable(const struct census_memory *memory, uint64_t word)
{
	return word % 8 == 0 && module_mapping(memory, word);
}

bool type_name_of_vtable(struct census_memory *memory, uint64_t word, char name[TYPE_NAME])
{
	uint64_t table[3], info[2]; /* offset to the top, type_info, the first function */
	char text[TEXT_BYTES];

	if (!type_name_may_be_vtable(memory, word) || !census_memory_read(memory, word - 16, table, sizeof table) ||
	    table[0] || !module_mapping(memory, table[1]) || !census_memory_read(memory, table[1], info, sizeof info) ||
	    !module_mapping(memory, info[0]) || !module_mapping(memory, info[1]) ||
	    !census_memory_read_text(memory, info[1], text, sizeof text))
		return false;
	const struct mapping *code = table[2] ? module_mapping(memory, table[2]) : NULL;
	if (table[2] && (!code || !(code->prot & PROT_EXEC)))
		return false;
	return type_name_demangle(text + (text[0] == '*'), name);
}

/* It, or the class that it is an object of, or … is the type of itself. */
static bool is_metatype(struct census_memory *memory, uint64_t meta)
{
	char name[8];

	for (unsigned depth = 0; depth < META_DEPTH; depth++) {
		const uint64_t above = census_memory_word(memory, meta + 8);
		if (meta % 8 || !(census_memory_word(memory, meta + TYPE_FLAGS_AT) & SUBCLASS_OF_TYPE))
			return false;
		if (above == meta)
			return census_memory_read_text(memory, census_memory_word(memory, meta + TYPE_NAME_AT), name,
			                               sizeof name) &&
			       !strcmp(name, "type");
		meta = above;
	}
	return false;
}

bool type_name_of_python(struct census_memory *memory, uint64_t word, char name[TYPE_NAME])
{
	uint64_t head[4]; /* references, type, size, name */

	return word % 8 == 0 && word >= ADDRESS_LEAST && word < ADDRESS_END &&
	       census_memory_read(memory, word, head, sizeof head) && type_name_may_follow(head[0]) &&
	       is_metatype(memory, head[1]) && census_memory_read_text(memory, head[3], name, TYPE_NAME) &&
	       (isalpha((unsigned char)name[0]) || name[0] == '_');
}

/* Below 2^40; from 3.14 on flags may be in the upper 16 bits. */
bool type_name_may_follow(uint64_t word)
{
	return word && (!(word >> 40) || (word >> 48 <= 15 && !(word >> 32 & 0xffff)));
}
