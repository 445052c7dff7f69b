/* SPDX-License-Identifier: MIT */
#include "python/code_object.h"

#include "dump_format.h"
#include "python/python_memory.h"
#include "tables/stack_hash.h"

#define BESIDE_MULTIPLIER 0x9fb21c651e98df25ull
#define CHARACTERS_MAX (1ull << 40) /* of a str that is believed */

/* ---- the hash ---- */

/*
 * A difference in any bit reaches the upper ones, from where the next step takes it down again. So what one step has
 * taken up must not meet what another has: two small differences may cancel each other.
 */
static uint64_t add_word(uint64_t hash, uint64_t word)
{
	hash ^= word;
	return (hash << 29 | hash >> 35) * STACK_HASH_P;
}

/* The step of a second chain: with the same one, what two words at one place of both differ in might cancel out. */
static uint64_t add_word_beside(uint64_t hash, uint64_t word)
{
	hash ^= word;
	return (hash << 31 | hash >> 33) * BESIDE_MULTIPLIER;
}

/*
 * Bytes of an object, whose head before them has eight at least: so the last word may begin before them. Two chains,
 * since each step of one waits for the one before. They meet when the last word of the first has gone through two.
 */
static uint64_t add_bytes(uint64_t hash, uint64_t address, uint32_t bytes)
{
	uint64_t other = bytes;
	uint32_t i = 0;

	for (; i + 16 <= bytes; i += 16) {
		hash = add_word(hash, python_bytes(address + i));
		other = add_word_beside(other, python_bytes(address + i + 8));
	}
	if (i + 8 <= bytes) {
		hash = add_word(hash, python_bytes(address + i));
		i += 8;
	}
	if (i < bytes)
		other = add_word_beside(other, python_bytes(address + bytes - 8) >> 8 * (8 - (bytes - i)));
	return add_word(add_word(hash, bytes), other);
}

static uint64_t add_text(uint64_t hash, const struct code_text *text)
{
	return text->bytes ? add_bytes(hash ^ text->width, text->address, text->bytes) : add_word(hash, text->address);
}

static uint64_t add_table(uint64_t hash, uint64_t table, uint32_t bytes)
{
	if (bytes <= 2 * CODE_TABLE_END)
		return add_bytes(hash, table, bytes);
	hash = add_bytes(hash ^ bytes, table, CODE_TABLE_END);
	return add_bytes(hash, table + bytes - CODE_TABLE_END, CODE_TABLE_END);
}

/* ---- what the object holds ---- */

static bool has_type(uint64_t object, uint64_t type, const struct python_layout *l)
{
	return python_is_address(object) && python_word(object, l->frames.object_type) == type;
}

static struct code_text text_of(uint64_t object, uint32_t bytes_max, const struct python_layout *l)
{
	const struct python_code_layout *c = &l->code;
	struct code_text text = { .address = object, .bytes = 0, .width = 1, .cut = true };

	if (!has_type(object, l->string_type, l))
		return text;
	uint64_t length = python_word(object, c->string_length);
	uint32_t state = (uint32_t)python_int(object, c->string_state);
	uint32_t width = (state & c->string_kind) / (c->string_kind & -c->string_kind);
	if (!(state & c->string_compact) || (width != 1 && width != 2 && width != 4) || length > CHARACTERS_MAX)
		return text;
	text.address = object + (state & c->string_ascii ? c->ascii_data : c->wide_data);
	text.width = (uint8_t)width;
	text.cut = length * width > bytes_max;
	text.bytes = (uint16_t)(text.cut ? bytes_max : length * width);
	return text;
}

void code_object_read(struct code_object *code, const struct python_layout *layout, const struct python_walked *frame)
{
	const struct python_code_layout *c = &layout->code;
	uint64_t lines = python_word(frame->code, c->lines), bytes = 0, hash;

	code->address = frame->code;
	code->bytes = frame->bytes;
	code->first_line = python_int(frame->code, c->first_line);
	code->name = text_of(python_word(frame->code, c->name), DUMP_CODE_NAME_MAX, layout);
	code->file = text_of(python_word(frame->code, c->file), DUMP_CODE_FILE_MAX, layout);
	code->table_cut = !has_type(lines, layout->bytes_type, layout);
	if (!code->table_cut)
		bytes = python_word(lines, layout->frames.bytes_size);
	code->table_cut |= bytes > DUMP_CODE_TABLE_MAX;
	code->table = lines + layout->frames.bytes_data;
	code->table_bytes = code->table_cut ? 0 : (uint32_t)bytes;
	hash = add_word(add_word(0, code->address), (uint64_t)code->bytes << 32 | (uint32_t)code->first_line);
	hash = add_text(hash, &code->name);
	hash = add_text(hash, &code->file);
	code->hash = stack_hash_spread(add_table(hash, code->table, code->table_bytes));
}
