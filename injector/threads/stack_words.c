/* SPDX-License-Identifier: MIT */
#include "stack_words.h"

#include <stdlib.h>
#include <time.h>

#include "grow.h"
#include "now.h"
#include "watchdog.h"

#define PAUSE_NS 1000000

static struct stack_words *words_of(struct noted_words *noted, const struct stack_position *owner,
                                    const struct thread_stack *stack)
{
	for (size_t i = 0; i < noted->count; i++)
		if (noted->list[i].tid == owner->tid && noted->list[i].start == stack->start)
			return &noted->list[i];
	if (!grow_list(noted->list, noted->count))
		return NULL;
	noted->list[noted->count] = (struct stack_words){
		.tid = owner->tid, .thread_pointer = owner->thread_pointer, .start = stack->start, .end = stack->end
	};
	return &noted->list[noted->count++];
}

bool noted_words_add(struct noted_words *noted, const struct stack_position *owner, const struct thread_stack *stack,
                     const struct stack_word *word)
{
	struct stack_words *words = words_of(noted, owner, stack);

	if (!words)
		return false;
	if (!grow_list(words->list, words->count)) {
		noted->count -= words->count == 0; /* it is the last one */
		return false;
	}
	words->list[words->count++] = *word;
	return true;
}

uint64_t noted_words_first(const struct noted_words *noted)
{
	return noted->list[0].list[0].where;
}

static bool is_over(uint64_t end_ns)
{
	return now_ns(CLOCK_MONOTONIC) >= end_ns || watchdog_asked_twice();
}

uint64_t noted_words_clear(struct noted_words *noted, int (*clear)(void *context, struct stack_words *words),
                           void *context, uint64_t end_ns, bool *gone)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	uint64_t alive = 0;

	*gone = false;
	for (size_t i = 0; i < noted->count; i++) {
		struct stack_words *words = &noted->list[i];
		size_t before = SIZE_MAX;
		int rc = 0;

		while (rc == 0 && words->count && words->count < before && !is_over(end_ns)) {
			if (before != SIZE_MAX) /* the thread shall run between two stops */
				nanosleep(&pause, NULL);
			before = words->count;
			rc = clear(context, words);
		}
		*gone |= rc == -ESRCH;
		if (words->count && !alive)
			alive = words->list[0].where;
	}
	return alive;
}

void noted_words_forget(struct noted_words *noted)
{
	for (size_t i = 0; i < noted->count; i++)
		free(noted->list[i].list);
	free(noted->list);
	*noted = (struct noted_words){ 0 };
}
