/* SPDX-License-Identifier: MIT */
#include "arch/thread_variable.h"

#include "arch/aarch64/words.h"

#define INSTRUCTIONS_MAX 24u
#define REGISTERS 32u

/* What a register holds. */
enum content {
	UNKNOWN,
	NUMBER,    /* offset */
	ADDRESS,   /* address: of something in the module */
	WORD,      /* the word at address, + offset */
	DESCRIBED, /* what the descriptor at address says, + offset */
	PLACE,     /* the address of a variable of the thread: place */
	VALUE,     /* … and what is in it */
};

struct value {
	enum content content;
	uint64_t address;
	int64_t offset;
	struct thread_variable place;
};

struct follower {
	struct value registers[REGISTERS]; /* the last one stays UNKNOWN */
	uint64_t at;                       /* address of the instruction */
};

static const struct value unknown = { .content = UNKNOWN };

/* The same, so much further; as the processor adds. */
static struct value moved(struct value v, int64_t by)
{
	if (v.content == PLACE)
		v.place.offset = (int64_t)((uint64_t)v.place.offset + (uint64_t)by);
	else if (v.content == NUMBER || v.content == WORD || v.content == DESCRIBED)
		v.offset = (int64_t)((uint64_t)v.offset + (uint64_t)by);
	else if (v.content == ADDRESS)
		v.address += (uint64_t)by;
	else
		v.content = UNKNOWN;
	return v;
}

static bool is_thread_pointer(const struct value *v)
{
	return v->content == PLACE && v->place.kind == THREAD_VARIABLE_OFFSET && v->place.offset == 0;
}

/* From the thread pointer on. */
static struct value place_of(const struct value *distance)
{
	static const enum thread_variable_kind kinds[] = { [NUMBER] = THREAD_VARIABLE_OFFSET,
		                                           [WORD] = THREAD_VARIABLE_WORD,
		                                           [DESCRIBED] = THREAD_VARIABLE_DESCRIPTOR };

	if (distance->content != NUMBER && distance->content != WORD && distance->content != DESCRIBED)
		return unknown;
	return (struct value){ .content = PLACE,
		               .place = { kinds[distance->content], distance->address, distance->offset } };
}

static struct value sum(const struct value *a, const struct value *b)
{
	return is_thread_pointer(a) ? place_of(b) : is_thread_pointer(b) ? place_of(a) : unknown;
}

static struct value loaded(struct value from)
{
	if (from.content == ADDRESS)
		return (struct value){ .content = WORD, .address = from.address };
	from.content = from.content == PLACE ? VALUE : UNKNOWN;
	return from;
}

/* movz, movk: of the whole register */
static bool number_moved(struct value *to, uint32_t word)
{
	const uint64_t part = word >> 5 & 0xffff;
	const unsigned shift = 16 * (word >> 21 & 3);

	if ((word & 0xff800000) == 0xd2800000) {
		*to = (struct value){ .content = NUMBER, .offset = (int64_t)(part << shift) };
		return true;
	}
	if ((word & 0xff800000) != 0xf2800000)
		return false;
	if (to->content == NUMBER)
		to->offset = (int64_t)(((uint64_t)to->offset & ~(0xffffull << shift)) | part << shift);
	else
		*to = unknown;
	return true;
}

/* Loads and stores by the stack pointer, and what sets it or the frame pointer from it: registers that are loaded are
 * not known. */
static bool is_frame(struct follower *f, uint32_t word)
{
	struct word_access access;
	uint64_t number;

	if (word == WORD_NOP || word == WORD_LANDING_PAD || word == WORD_SIGN || word == WORD_UNSIGN)
		return true;
	if (word_from(word) != STACK_POINTER)
		return false;
	if (word_accesses(word, &access)) {
		if (access.loads && !access.vector) {
			f->registers[word_to(word)] = unknown;
			if (word_is_pair(word))
				f->registers[word >> 10 & 31] = unknown;
		}
		return true;
	}
	const bool moves = word_adds(word, &number) || (word & 0xff800000) == 0xd1000000; /* sub */
	if (moves && word_to(word) != STACK_POINTER)
		f->registers[word_to(word)] = unknown;
	return moves;
}

/* blr: of the function that is the first word of a descriptor, which is given the descriptor in x0. By its own
 * convention it changes nothing else: compilers keep the thread pointer in x1 meanwhile. */
static bool call(struct follower *f, uint32_t word)
{
	const struct value function = f->registers[word_from(word)], given = f->registers[0];

	f->registers[0] = f->registers[30] = unknown;
	if (function.content != WORD || function.offset || given.content != ADDRESS ||
	    given.address != function.address)
		return false;
	f->registers[0] = (struct value){ .content = DESCRIBED, .address = given.address };
	return true;
}

/* False: it does something else. */
static bool follow(struct follower *f, uint32_t word)
{
	const struct value *from = &f->registers[word_from(word)], *other = &f->registers[word >> 16 & 31];
	struct value *to = &f->registers[word_to(word)];
	struct word_access access;
	uint64_t number;
	bool page;

	if (is_frame(f, word))
		return true;
	if ((word & 0xfffffc1f) == 0xd63f0000)
		return call(f, word);
	if (word_to(word) == STACK_POINTER)
		return false;
	if ((word & ~31u) == 0xd53bd040) /* mrs of tpidr_el0 */
		*to = (struct value){ .content = PLACE, .place = { THREAD_VARIABLE_OFFSET, 0, 0 } };
	else if (word_makes_address(word, f->at, &page, &number))
		*to = (struct value){ .content = ADDRESS, .address = number };
	else if (word_adds(word, &number))
		*to = moved(*from, (int64_t)number);
	else if ((word & 0xffe0fc00) == 0x8b000000) /* add of registers */
		*to = sum(from, other);
	else if ((word & 0xffe0ffe0) == 0xaa0003e0) /* mov of registers */
		*to = *other;
	else if ((word & 0xffe0fc00) == 0xf8606800) { /* ldr at the sum of registers */
		const struct value place = sum(from, other);
		*to = loaded(place);
	} else if ((word & 0xffc00000) == 0xf9400000 && word_accesses(word, &access)) /* ldr */
		*to = loaded(moved(*from, access.distance));
	else
		return number_moved(to, word);
	return true;
}

bool thread_variable_read(struct thread_variable *v, const uint8_t *code, size_t bytes, uint64_t address)
{
	struct follower f = { 0 };

	for (unsigned i = 0; i < INSTRUCTIONS_MAX && (i + 1) * WORD_BYTES <= bytes; i++) {
		const uint32_t word = word_at(code + (size_t)i * WORD_BYTES);
		f.at = address + i * WORD_BYTES;
		if (word == WORD_RETURN) {
			*v = f.registers[0].place;
			return f.registers[0].content == VALUE;
		}
		if (!follow(&f, word))
			return false;
	}
	return false;
}
