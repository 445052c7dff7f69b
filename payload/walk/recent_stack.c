/* SPDX-License-Identifier: MIT */
/* The outer frames that the stacks of a thread have in common, see recent_stack.h. */
#include "walk/recent_stack.h"

struct recent_stack recent_stacks[RECENT_STACKS] PAYLOAD_PAGES;

void recent_stack_forget(struct recent_stack *recent)
{
	recent->count = 0;
	recent->frames[0].sp = UINT64_MAX;
	recent->used = true;
	/* Before any frame changes: a signal handler may leave the hook for ever at any point. */
	__asm__ volatile("" : : : "memory");
}

void recent_stack_correct(struct recent_stack *recent, uint32_t fallback)
{
	for (uint32_t i = 1; i <= recent->count; i++)
		recent->frames[i].fallback = (uint16_t)(recent->frames[i].fallback + fallback);
}

/* How many frames, from the outermost inwards, two lists have in common. */
static uint32_t frames_shared(const struct fresh_frame *a, uint32_t a_count, const struct fresh_frame *b,
                              uint32_t b_count)
{
	uint32_t least = a_count < b_count ? a_count : b_count, shared = 0;

	for (a += a_count, b += b_count; shared < least; shared++) {
		a--, b--;
		if (a->sp != b->sp || a->frame != b->frame || a->fp != b->fp)
			break;
	}
	return shared;
}

uint32_t recent_stack_look(struct recent_stack *recent, uint32_t count, uint32_t held)
{
	uint32_t last = recent->last % 2, shared = 0;

	if (recent->last_count <= DUMP_FRAMES_MAX)
		shared = frames_shared(recent->fresh[!last], count, recent->fresh[last], recent->last_count);
	recent->last = !last;
	recent->last_count = (uint16_t)count;
	if (!shared) {
		recent->sights = 0;
		return 0;
	}
	return recent->sights++ < (held < recent->count) ? 0 : shared;
}

static inline struct recent_word *add_word(struct recent_word *word, uint64_t below_end, uint32_t frame, uint64_t value)
{
	*word = (struct recent_word){ .at = (int32_t)(0u - (uint32_t)(below_end >> 3)),
		                      .frame = frame,
		                      .value = value };
	return word + 1;
}

void recent_stack_keep(struct recent_stack *recent, uint32_t kept, uint32_t held, uint32_t fp_below)
{
	const struct fresh_frame *fresh = recent->fresh[recent->last % 2] + recent->last_count;
	struct recent_frame *f = &recent->frames[held];
	struct recent_word *word = recent->words;
	uint64_t end = recent->stack_end, hash = 0, power = 1, fallback = 0;

	if (held) {
		if (f->word > RECENT_WORDS - 2 * kept)
			return; /* never written so */
		word += f->word;
		hash = f->hash;
		power = f->power;
		fallback = f->fallback;
	}
	for (; kept > 0 && fp_below != RECENT_UNCHECKED; kept--) {
		/* What a frame was made of matters to the frames inside of it only. */
		if (held) {
			f->fp_below = fp_below;
			word = add_word(word, end - f->sp + 8, held, DUMP_FRAME_ADDRESS(f->frame));
			if (fp_below)
				word = add_word(word, end - f->sp + fp_below, held, f->fp);
		}
		fresh--, f++, held++;
		fp_below = (uint32_t)fresh->fp_below;
		fallback += fresh->fp_below / FRESH_FALLBACK;
		f->sp = fresh->sp;
		f->frame = fresh->frame;
		f->fp = fresh->fp;
		f->hash = hash += power * stack_hash_frame(fresh->frame);
		f->power = power *= STACK_HASH_P;
		f->fallback = (uint16_t)fallback;
		f->word = (uint16_t)(word - recent->words);
	}
	for (; (word - recent->words) % RECENT_WORD_GROUP; word++)
		*word = word[-1];
	word->frame = held;
	recent->word_count = (uint32_t)(word - recent->words);
	__asm__ volatile("" : : : "memory");
	recent->count = held;
}
