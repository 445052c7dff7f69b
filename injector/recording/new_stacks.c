/* SPDX-License-Identifier: MIT */
#include "recording/new_stacks.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "recording/dump_writer_internal.h"

#define LOOKS 5u
#define BITS 64u

/* What stacks take, as far as the target is to be believed: only for whether it is another number. */
static uint64_t filled_bytes(const struct dump_writer *w)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < w->own->region_count; i++) {
		const struct dump_region *r = &w->own->regions[i];
		if (r->kind != DUMP_REGION_STACKS)
			continue;
		struct dump_arena *arena = dump_writer_at(w, r->offset);
		sum += atomic_load_explicit(dump_writer_u64(&arena->used), memory_order_relaxed);
	}
	return sum;
}

static bool worth_a_look(struct new_stacks *n, const struct dump_writer *w)
{
	uint64_t filled = filled_bytes(w);

	if (filled != n->filled)
		n->looks_left = LOOKS;
	n->filled = filled;
	if (!n->looks_left)
		return false;
	n->looks_left--;
	return true;
}

static int make_room(struct new_stacks *n, const struct dump_writer *w, struct err *e)
{
	uint64_t entries = 0;

	for (uint32_t i = 0; i < w->own->region_count; i++)
		if (w->own->regions[i].kind == DUMP_REGION_STACK_INDEX)
			entries += w->own->regions[i].entries;
	size_t words = (size_t)((entries + BITS - 1) / BITS);
	if (words <= n->seen_words)
		return 0;
	uint64_t *more = reallocarray(n->seen, words, sizeof *more);
	if (!more)
		return err_set(e, ENOMEM, "no memory for which stacks are known");
	memset(more + n->seen_words, 0, (words - n->seen_words) * sizeof *more);
	n->seen = more;
	n->seen_words = words;
	return 0;
}

/* The region of stacks that has so many bytes from the offset on; NULL: none does. */
static const struct dump_region *region_of(const struct dump_writer *w, uint64_t offset, uint64_t bytes)
{
	for (uint32_t i = 0; i < w->own->region_count; i++) {
		const struct dump_region *r = &w->own->regions[i];
		if (r->kind == DUMP_REGION_STACKS && offset >= r->offset && offset - r->offset < r->bytes &&
		    bytes <= r->bytes - (offset - r->offset))
			return r;
	}
	return NULL;
}

static void tell(const struct dump_writer *w, uint64_t word, void (*fn)(void *, const uint64_t *, uint32_t), void *arg)
{
	const uint64_t offset = (uint64_t)DUMP_INDEX_REFERENCE(word) * DUMP_STACK_ALIGN;
	uint64_t frames[DUMP_FRAMES_MAX];
	struct dump_stack head;

	if (!region_of(w, offset, sizeof head))
		return;
	memcpy(&head, dump_writer_at(w, offset), sizeof head);
	if (head.flags & DUMP_STACK_CODE || head.frame_count > DUMP_FRAMES_MAX ||
	    !region_of(w, offset, sizeof head + head.frame_count * sizeof *frames))
		return;
	memcpy(frames, (char *)dump_writer_at(w, offset) + sizeof head, head.frame_count * sizeof *frames);
	fn(arg, frames, head.frame_count);
}

int new_stacks_each(struct new_stacks *n, const struct dump_writer *w, bool all,
                    void (*fn)(void *arg, const uint64_t *frames, uint32_t count), void *arg, struct err *e)
{
	uint64_t number = 0;

	if (!worth_a_look(n, w) && !all)
		return 0;
	int rc = make_room(n, w, e);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < w->own->region_count; i++) {
		const struct dump_region *r = &w->own->regions[i];
		if (r->kind != DUMP_REGION_STACK_INDEX)
			continue;
		uint64_t *words = dump_writer_at(w, r->offset);
		for (uint64_t k = 0; k < r->entries; k++, number++) {
			/* Acquires the record: stack_table.c of the payload. */
			uint64_t word = atomic_load_explicit(dump_writer_u64(&words[k]), memory_order_acquire);
			uint64_t *seen = &n->seen[number / BITS], bit = 1ull << number % BITS;
			if (!word || *seen & bit)
				continue;
			*seen |= bit;
			tell(w, word, fn, arg);
		}
	}
	return 0;
}

void new_stacks_done(struct new_stacks *n)
{
	free(n->seen);
	*n = (struct new_stacks){ 0 };
}
