/* SPDX-License-Identifier: MIT */
/*
 * Only x16 and x17 are used before the copy, and flags: what stands between caller and function may change these
 * (AAPCS64 6.1.1). What is not decided goes to trampoline.next as from the trampoline (payload/arch/aarch64/hooks.S).
 * Where registers are to be kept nothing is decided: the hook's first instructions do it (TRAMPOLINE_KEEPS).
 */
#include "arch/detour_code.h"

#include <string.h>

#include "arch/aarch64/words.h"
#include "arch/entry_code.h"

/* Behind the copy. */
#define TO_OTHER 72u
#define TO_BELOW 80u
#define TO_NEXT 84u
#define UNDO 96u
#define NUMBERS 104u

enum {
	NUMBER_OWNER,
	NUMBER_NEAR,
	NUMBER_DATA,
	NUMBER_FILTER,
	NUMBER_MULTIPLIER,
	NUMBER_COUNT,
};

_Static_assert(DETOUR_COPY + ENTRY_COPY_MAX <= TO_OTHER && NUMBERS + 8 * NUMBER_COUNT <= DETOUR_BYTES, "detour");

struct writer {
	uint8_t *code;
	unsigned at;
};

static void put(struct writer *w, uint32_t word)
{
	word_put(w->code + w->at, word);
	w->at += WORD_BYTES;
}

/* ldr of a number, of 8 bytes, from behind the code. */
static void put_number(struct writer *w, uint32_t to, unsigned number)
{
	put(w, 0x58000000 | (NUMBERS + 8 * number - w->at) / WORD_BYTES << 5 | to);
}

/* A branch whose word has the distance from bit `shift` on. */
static void put_branch(struct writer *w, uint32_t word, unsigned target, unsigned shift)
{
	const uint32_t bits = shift ? 0x7ffff : 0x3ffffff;

	put(w, word | (((uint32_t)(target - w->at) / WORD_BYTES) & bits) << shift);
}

static void put_allocate(struct writer *w)
{
	put(w, 0xd53bd050); /* mrs x16, tpidr_el0 */
	put_number(w, 17, NUMBER_OWNER);
	put(w, 0xf9400231);                     /* ldr x17, [x17] */
	put(w, 0xeb11021f);                     /* cmp x16, x17 */
	put_branch(w, 0x54000001, TO_OTHER, 5); /* b.ne */
	put_number(w, 16, NUMBER_NEAR);
	put(w, 0xf9400211 | THREAD_STATE_REMAINING / 8 << 10); /* ldr x17, [x16, #REMAINING] */
	put(w, 0xf100041f);                                    /* cmp x0, #1: no carry for 0, which counts as 1 */
	put(w, 0xfa000231);                                    /* sbcs x17, x17, x0 */
	put(w, 0xf9000211 | THREAD_STATE_REMAINING / 8 << 10); /* str x17, [x16, #REMAINING] */
	put_branch(w, 0x54000004, TO_BELOW, 5);                /* b.mi */
}

static void put_release(struct writer *w, uint32_t mask)
{
	const uint32_t bits = (uint32_t)__builtin_popcount(mask);

	put_number(w, 16, NUMBER_MULTIPLIER);
	put(w, 0x9b007e10);                                                             /* mul x16, x16, x0 */
	put(w, bits ? 0xd3400210 | FILTER_SHIFT << 16 | (FILTER_SHIFT + bits - 1) << 10 /* ubfx x16, x16 */
	            : 0xd2800010);                                                      /* mov x16, #0 */
	put_number(w, 17, NUMBER_FILTER);
	put(w, 0x38706a30);                     /* ldrb w16, [x17, x16] */
	put_branch(w, 0x35000010, TO_OTHER, 5); /* cbnz w16 */
}

static void put_undecided(uint8_t *code)
{
	struct writer w = { code, TO_OTHER };

	put(&w, 0xd2800009);                    /* mov x9, #0 */
	put_branch(&w, 0x14000000, TO_NEXT, 0); /* b */
	put(&w, 0xaa1003e9);                    /* TO_BELOW: mov x9, x16 */
	put_number(&w, 17, NUMBER_DATA);        /* TO_NEXT */
	put(&w, 0xf9400230);                    /* ldr x16, [x17] */
	put(&w, WORD_JUMP_16);
}

unsigned detour_code_enter_at(bool keeps, const struct instruction_undo *undo)
{
	(void)keeps;
	return undo->distance ? UNDO : 0;
}

static void put_undo(uint8_t *code, const struct instruction_undo *undo)
{
	struct writer w = { code, UNDO + ENTRY_UNDO_BYTES };

	entry_code_undo(code + UNDO, undo);
	put_branch(&w, 0x14000000, 0, 0);
}

void detour_code_make(uint8_t code[DETOUR_BYTES], const struct detour_code *d)
{
	static const uint8_t entrances[] = {
#define ENTRANCE_(id, symbol, shape, size, group) TRAMPOLINE_ENTRANCE(shape, size),
		HOOK_LIST(ENTRANCE_)
#undef ENTRANCE_
	};
	const uint64_t numbers[NUMBER_COUNT] = { d->shared + TRAMPOLINES_NEAR_OWNER, d->shared + TRAMPOLINES_NEAR,
		                                 d->data, d->filter, d->filter_multiplier };
	const unsigned entrance = d->decides ? entrances[d->hook] : TRAMPOLINE_OTHER;
	struct writer w = { code, 0 };

	memset(code, 0, DETOUR_BYTES);
	memcpy(code + NUMBERS, numbers, sizeof numbers);
	put_undecided(code);
	put_undo(code, &d->undo);
	if (d->keeps)
		put_branch(&w, 0x14000000, TO_NEXT, 0);
	else if (entrance == TRAMPOLINE_ALLOCATE)
		put_allocate(&w);
	else if (entrance == TRAMPOLINE_RELEASE)
		put_release(&w, d->filter_mask);
	else if (entrance == TRAMPOLINE_OTHER)
		put_branch(&w, 0x14000000, TO_OTHER, 0);
	else
		entry_code_far_jump(code, d->trampoline + entrance);
	while (entrance != TRAMPOLINE_OTHER && w.at && w.at < DETOUR_COPY)
		put(&w, WORD_NOP);
}
