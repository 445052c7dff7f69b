/* SPDX-License-Identifier: MIT */
/* The last stack of a thread, see recent_stack.h. */
#include "recent_stack.h"

struct recent_stack recent_stacks[RECENT_STACKS] PAYLOAD_PAGES;

void recent_stack_forget(struct recent_stack *recent)
{
	recent->count = 0;
	recent->frames[0].sp = UINT64_MAX;
	recent->used = true;
	/* Before any frame changes: a signal handler may leave the hook for ever at any point. */
	__asm__ volatile("" : : : "memory");
}

void recent_stack_correct(struct recent_stack *recent, uint32_t held, uint32_t fallback)
{
	for (uint32_t i = 1; i <= held; i++)
		recent->frames[i].fallback = (uint16_t)(recent->frames[i].fallback + fallback);
}

/* What recent_stack_keep() writes. */
struct keeper {
	struct recent_word *word; /* the next */
	uint64_t end;             /* of the stack */
	uint32_t unchecked;       /* frame that ends the list of words, 0: none yet */
};

static inline void keep_word(struct keeper *k, uint64_t address, uint32_t frame, uint64_t value)
{
	*k->word++ = (struct recent_word){ .at = (int32_t)((int64_t)(address - k->end) >> 3), .frame = frame, .value = value };
}

static inline void keep_words(struct keeper *k, const struct recent_frame *f, uint32_t number)
{
	if (k->unchecked)
		return;
	keep_word(k, f->sp - 8, number, DUMP_FRAME_ADDRESS(f->frame));
	if (f->fp_below == RECENT_UNCHECKED)
		k->unchecked = number;
	else if (f->fp_below)
		keep_word(k, f->sp - f->fp_below, number, f->fp);
}

void recent_stack_keep(struct recent_stack *recent, uint32_t count, uint32_t held)
{
	struct recent_frame *f = &recent->frames[held];
	struct keeper k = { .word = recent->words, .end = recent->stack_end };
	uint32_t fallback = 0;
	uint64_t hash = 0;

	if (held) {
		if (f->word > 2 * (DUMP_FRAMES_MAX - 1 - count))
			return; /* never written so */
		k.word += f->word;
		hash = f->hash;
		fallback = f->fallback;
		keep_words(&k, f, held); /* its frame pointer may have been read elsewhere this time */
	}
	while (count > 0) {
		const struct fresh_frame *fresh = &recent->fresh[--count];

		f++;
		f->sp = fresh->sp;
		f->frame = fresh->frame;
		f->fp = fresh->fp;
		f->hash = hash = stack_hash_push(hash, fresh->frame);
		f->fp_below = fresh->fp_below;
		f->fallback = (uint16_t)(fallback += fresh->fallback);
		f->word = (uint16_t)(k.word - recent->words);
		keep_words(&k, f, ++held);
	}
	k.word->frame = k.unchecked ? k.unchecked : held;
	recent->word_count = (uint32_t)(k.word - recent->words);
	__asm__ volatile("" : : : "memory");
	recent->count = held;
}
