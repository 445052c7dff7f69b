/* SPDX-License-Identifier: MIT */
/* Words that a search has met on stacks which threads own, until it is known whether they are alive. */
#ifndef MEMATTACH_STACK_WORDS_H
#define MEMATTACH_STACK_WORDS_H

#include "thread_stack.h"

struct stack_word {
	uint64_t where, value;
};

/* On one stack. */
struct stack_words {
	pid_t tid;
	uint64_t thread_pointer;
	uint64_t start, end; /* of the stack */
	struct stack_word *list;
	size_t count;
};

struct noted_words {
	struct stack_words *list;
	size_t count;
};

/* False: no memory. */
bool noted_words_add(struct noted_words *noted, const struct stack_position *owner, const struct thread_stack *stack,
                     const struct stack_word *word);
/* What was noted first; there must be something. */
uint64_t noted_words_first(const struct noted_words *noted);
/*
 * Calls clear for each stack, which takes out of the list what is dead, until it makes no progress or it is end_ns.
 * Returns a word that is left, 0 none. *gone: clear said -ESRCH.
 */
uint64_t noted_words_clear(struct noted_words *noted, int (*clear)(void *context, struct stack_words *words),
                           void *context, uint64_t end_ns, bool *gone);
void noted_words_forget(struct noted_words *noted);

#endif
