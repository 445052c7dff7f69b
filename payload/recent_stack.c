/* SPDX-License-Identifier: MIT */
/* The last stack of a thread, see recent_stack.h. */
#include "recent_stack.h"

struct recent_stack recent_stacks[RECENT_STACKS] PAYLOAD_PAGES;

void recent_stack_forget(struct recent_stack *recent)
{
	recent->first = DUMP_FRAMES_MAX;
	recent->frames[DUMP_FRAMES_MAX].sp = UINT64_MAX;
	recent->used = 1;
	/* Before any frame changes: a signal handler may leave the hook for ever at any point. */
	__asm__ volatile("" : : : "memory");
}

void recent_stack_keep(struct recent_stack *recent, uint32_t count, uint32_t from)
{
	uint64_t hash = from < DUMP_FRAMES_MAX ? recent->frames[from].hash : 0;
	uint32_t fallback = from < DUMP_FRAMES_MAX ? recent->frames[from].fallback : 0;

	for (uint32_t i = count; i > 0; i--) {
		struct recent_frame *f = &recent->frames[from - 1 - (count - i)];

		*f = recent->fresh[i - 1];
		f->hash = hash = stack_hash_push(hash, f->frame);
		f->fallback = fallback += f->fallback;
	}
	__asm__ volatile("" : : : "memory");
	recent->first = from - count;
}
