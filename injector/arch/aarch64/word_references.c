/* SPDX-License-Identifier: MIT */
#include "arch/word_references.h"

#include "arch/aarch64/made.h"

#define CALL_KEEPS 0xfff80000u /* x19 and higher */
#define BRANCHES_MAX 16u

/* Registers whose address was read from a word of data: what is read there is no address to go on with. */
struct follower {
	struct made made;
	uint32_t read;
};

/* What was known at branches with a condition, for the code that is reached in no other way. */
struct branches {
	struct {
		uint64_t target;
		struct follower then;
	} list[BRANCHES_MAX];
	unsigned count;
};

static void add(struct word_references *r, uint64_t place)
{
	if (!word_references_has(r, place) && r->count < WORD_REFERENCES_MAX)
		r->list[r->count++] = place;
}

/* Whole general registers that a load or store is about, 0: it is none. */
static unsigned words_of(uint32_t word, bool *loads)
{
	const bool pair = word_is_pair(word);
	struct word_access access;

	if (!word_accesses(word, &access) || access.vector || access.bytes != (pair ? 16 : 8))
		return 0;
	*loads = access.loads;
	return pair ? 2 : 1;
}

static void step(struct follower *f, struct word_references *r, uint32_t word, uint64_t here, word_read_fn read,
                 void *context)
{
	const uint32_t to = 1u << word_to(word);
	const bool from_read = f->read >> word_from(word) & 1;
	uint64_t place, number, value;
	bool whole, loads = false;

	const bool found = made_refers(&f->made, word, here, &place, &whole);
	const unsigned words = found && !whole ? words_of(word, &loads) : 0;
	for (unsigned i = 0; i < words; i++)
		add(r, place + i * sizeof value);
	if (whole)
		f->read = from_read && word_adds(word, &number) ? f->read | to : f->read & ~to;
	else if (words == 1 && loads && !from_read && read(context, place, &value)) {
		made_put(&f->made, word_to(word), value);
		f->read |= to;
	}
}

static void branch(struct branches *b, const struct follower *f, uint64_t target)
{
	if (b->count < BRANCHES_MAX) {
		b->list[b->count].target = target;
		b->list[b->count++].then = *f;
	}
}

/* Nothing falls through to here: what the first branch has, if one leads here. */
static void begin_anew(const struct branches *b, struct follower *f, uint64_t here)
{
	for (unsigned i = 0; i < b->count; i++)
		if (b->list[i].target == here) {
			*f = b->list[i].then;
			return;
		}
}

/* Calls keep few registers. True: control does not pass on behind the instruction. */
static bool leave(struct follower *f, struct branches *b, uint32_t word, uint64_t here)
{
	unsigned what = 0;
	int64_t distance;
	bool calls = false;

	const bool jumps = word_is_jump(word, &calls), indirect = word_is_indirect(word, &what);
	if (jumps ? calls : indirect && what == 1)
		f->made.known &= CALL_KEEPS;
	f->read &= f->made.known;
	if (word_is_condition(word, &distance) && distance > 0)
		branch(b, f, here + (uint64_t)distance);
	return jumps ? !calls : indirect && what != 1;
}

void word_references_find(struct word_references *r, const uint8_t *code, size_t bytes, uint64_t address,
                          word_read_fn read, void *context)
{
	struct branches branches = { .count = 0 };
	struct follower f = { 0 };
	bool ended = false;

	r->count = 0;
	for (size_t at = 0; at + WORD_BYTES <= bytes; at += WORD_BYTES) {
		const uint32_t word = word_at(code + at);

		if (ended)
			begin_anew(&branches, &f, address + at);
		step(&f, r, word, address + at, read, context);
		ended = leave(&f, &branches, word, address + at);
	}
}

bool word_references_has(const struct word_references *r, uint64_t address)
{
	for (unsigned i = 0; i < r->count; i++)
		if (r->list[i] == address)
			return true;
	return false;
}
