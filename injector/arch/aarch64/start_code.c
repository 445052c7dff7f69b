/* SPDX-License-Identifier: MIT */
#include "arch/start_code.h"

#include "arch/aarch64/words.h"
#include "files/whole_io.h"

#define INSTRUCTIONS_MAX 64u
#define PAGE 4096u
#define PAIR_BYTES (2 * WORD_BYTES)
#define ZERO 31u            /* as register of most instructions */
#define PAGES_AWAY 0x100000 /* adrp reaches so many, forwards and backwards */
#define BYTES_AWAY 0x100000 /* and adr so many */

/* What a register holds, if that is known. */
struct value {
	bool known;
	uint64_t value;
	uint64_t page_at; /* where adrp made it, 0: it was not that */
	uint64_t pair_at; /* where adrp, and add behind it, made it */
	uint64_t last_at; /* where it was made by add or ldr, behind adrp anywhere, or by adr */
};

struct reader {
	int mem;
	const struct start_arguments *arguments;
	uint64_t pc;
	struct value registers[STACK_POINTER + 1];
};

enum step { STEP_ON, STEP_TO_MAIN, STEP_UNKNOWN };

static bool is_hint(uint32_t word)
{
	return (word & 0xfffff01f) == 0xd503201f;
}

/* mov of a whole register: orr with the one that is zero */
static bool moves_register(uint32_t word)
{
	return (word & 0xffe0ffe0) == 0xaa0003e0;
}

/* and of a register and -16 */
static bool aligns(uint32_t word)
{
	return (word & 0xfffffc00) == 0x927cec00;
}

/* ldr of four or eight bytes at a number from a register */
static bool loads(uint32_t word, struct word_access *access)
{
	return (word & 0xbfc00000) == 0xb9400000 && word_accesses(word, access);
}

static struct value add(const struct reader *r, uint32_t word, uint64_t number)
{
	const struct value *from = &r->registers[word_from(word)];
	struct value v = { .known = from->known, .value = from->value + number };

	if (from->page_at && from->page_at + WORD_BYTES == r->pc && word_to(word) == word_from(word))
		v.pair_at = from->page_at;
	v.last_at = from->page_at ? r->pc : 0;
	return v;
}

/* A word that is not known is no error: few of them matter. */
static struct value load(const struct reader *r, uint32_t word, const struct word_access *access)
{
	const struct value *base = &r->registers[word_from(word)];
	struct value v = { 0 };

	v.known = base->known &&
	          whole_io_pread(r->mem, &v.value, access->bytes, base->value + (uint64_t)access->distance);
	v.last_at = base->page_at && access->bytes == sizeof v.value ? r->pc : 0;
	return v;
}

/* ldr of eight bytes, which moves the register on. */
static bool loads_and_moves(struct reader *r, uint32_t word)
{
	struct value *base = &r->registers[word_from(word)];
	struct word_access access;

	if ((word & 0xffe00c00) != 0xf8400400 || !word_accesses(word, &access) || word_to(word) == word_from(word))
		return false;
	const uint64_t moved = base->value + (uint64_t)access.distance;
	access.distance = 0;
	struct value loaded = load(r, word, &access);
	loaded.last_at = 0; /* nothing else may stand there: the other register must be moved on */
	r->registers[word_to(word)] = loaded;
	*base = (struct value){ .known = base->known, .value = moved };
	return true;
}

/* Of add and and, register 31 is the stack pointer; of the others it is none. */
static bool is_executed(struct reader *r, uint32_t word)
{
	struct value *to = &r->registers[word_to(word)], *from = &r->registers[word_from(word)];
	const unsigned other = word >> 16 & 31;
	struct word_access access;
	uint64_t number;
	bool page;

	if (is_hint(word))
		return true;
	if (word_adds(word, &number))
		*to = add(r, word, number);
	else if (aligns(word))
		*to = (struct value){ .known = from->known, .value = from->value & ~15ull };
	else if (word_to(word) == ZERO)
		return false;
	else if (word_makes_address(word, r->pc, &page, &number))
		*to = (struct value){
			.known = true, .value = number, .page_at = page ? r->pc : 0, .last_at = page ? 0 : r->pc
		};
	else if (word_moves_number(word, &number))
		*to = (struct value){ .known = true, .value = number };
	else if (moves_register(word) && other != ZERO)
		*to = (struct value){ .known = r->registers[other].known, .value = r->registers[other].value };
	else if (loads(word, &access))
		*to = load(r, word, &access);
	else
		return loads_and_moves(r, word);
	return true;
}

static bool hands_main_on(const struct reader *r)
{
	const struct value *function = &r->registers[0], *argc = &r->registers[1], *argv = &r->registers[2];

	return function->known && function->last_at && argc->known && argc->value == r->arguments->argc &&
	       argv->known && argv->value == r->arguments->argv;
}

/* Where a call or a jump without a condition goes is of no importance once it has main. */
static enum step branch(struct reader *r, uint32_t word)
{
	const struct value *from = &r->registers[word_from(word)];
	unsigned what;
	bool calls;

	if (word_is_jump(word, &calls)) {
		if (hands_main_on(r))
			return STEP_TO_MAIN;
		return word_branch(word, r->pc, &r->pc) ? STEP_ON : STEP_UNKNOWN;
	}
	if (!word_is_indirect(word, &what) || what > 1)
		return STEP_UNKNOWN;
	if (hands_main_on(r))
		return STEP_TO_MAIN;
	r->pc = from->value;
	return from->known ? STEP_ON : STEP_UNKNOWN;
}

static enum step read_instruction(struct reader *r)
{
	uint32_t word;

	if (!whole_io_pread(r->mem, &word, sizeof word, r->pc))
		return STEP_UNKNOWN;
	if (!is_executed(r, word))
		return branch(r, word);
	r->pc += WORD_BYTES;
	return STEP_ON;
}

/* One write to one page is made wholly or not at all, whatever happens to the writer. */
static bool fill_in(struct start_code *code, int mem, const struct value *function)
{
	const bool pair = function->pair_at != 0;
	uint8_t bytes[START_CODE_BYTES];

	*code = (struct start_code){ .main_address = function->value,
		                     .place = pair ? function->pair_at : function->last_at,
		                     .length = pair ? PAIR_BYTES : WORD_BYTES };
	return code->place % PAGE <= PAGE - code->length &&
	       whole_io_pread(mem, code->bytes, code->length, code->place) &&
	       (!pair ||
	        (start_code_for(code, code->main_address, bytes) && memcmp(bytes, code->bytes, PAIR_BYTES) == 0));
}

bool start_code_read(struct start_code *code, int mem, const struct start_arguments *arguments)
{
	struct reader r = { .mem = mem, .arguments = arguments, .pc = arguments->entry };
	struct start_code found;
	enum step step = STEP_ON;

	r.registers[STACK_POINTER] = (struct value){ .known = true, .value = arguments->sp };
	for (unsigned i = 0; i < INSTRUCTIONS_MAX && step == STEP_ON; i++)
		step = read_instruction(&r);
	if (step != STEP_TO_MAIN || !fill_in(&found, mem, &r.registers[0]))
		return false;
	*code = found;
	return true;
}

/* adr x0, of the function. */
static bool put_near(uint8_t *code, int64_t distance)
{
	const uint32_t bits = (uint32_t)distance & 0x1fffff;

	word_put(code, 0x10000000 | (bits & 3) << 29 | bits >> 2 << 5);
	return distance >= -BYTES_AWAY && distance < BYTES_AWAY;
}

/* adrp x0; add x0, x0, of the function. */
static bool put_pair(uint8_t *code, uint64_t place, uint64_t function)
{
	const int64_t pages = (int64_t)(function / PAGE) - (int64_t)(place / PAGE);
	const uint32_t distance = (uint32_t)pages & 0x1fffff;

	word_put(code, 0x90000000 | (distance & 3) << 29 | distance >> 2 << 5);
	word_put(code + WORD_BYTES, 0x91000000 | (uint32_t)(function % PAGE) << 10);
	return pages >= -PAGES_AWAY && pages < PAGES_AWAY;
}

/* Two instructions that follow each other become two that reach anywhere. Else the last one, which gives the register
 * its value whatever was in it before, becomes one that does so alone. */
bool start_code_for(const struct start_code *code, uint64_t function, uint8_t bytes[START_CODE_BYTES])
{
	return code->length == PAIR_BYTES ? put_pair(bytes, code->place, function)
	                                  : put_near(bytes, (int64_t)(function - code->place));
}
