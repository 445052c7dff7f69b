/* SPDX-License-Identifier: MIT */
#include "report/stack_counts.h"

#include <limits.h>
#include <string.h>

/* How many samples Python took part in, and of how many all of its frames are known. */
static void count_python(struct report *r, const struct dump_stack *stack, const struct stack_places *places)
{
	struct report_python *python = &r->python;

	if (!places->python)
		return;
	python->samples += stack->taken_count;
	python->complete += places->python_complete ? stack->taken_count : 0;
}

static void count_java(struct report *r, const struct dump_stack *stack, const struct stack_places *places)
{
	struct report_java *java = &r->java;

	if (!places->java)
		return;
	java->samples += stack->taken_count;
	java->complete += places->java_complete ? stack->taken_count : 0;
}

static bool is_own_code(uint64_t place)
{
	return place && !PLACE_IMAGE(place);
}

/* How many samples say less than they could, because of code that the process has made. */
static void count_own_code(struct report *r, const struct dump_stack *stack, const struct stack_places *places)
{
	struct report_own_code *own = &r->own_code;
	struct symbols *symbols = r->symbols;
	bool unnamed = false;

	for (uint32_t i = 0; i < places->count && symbols; i++) {
		size_t n;
		if (!is_own_code(places->list[i]))
			continue;
		bool has_name = !symbols_is_unnamed(symbols_find(symbols, places->list[i], &n));
		own->named |= has_name;
		unnamed |= !has_name;
	}
	own->samples += stack->taken_count;
	own->unnamed += unnamed ? stack->taken_count : 0;
	if (places->flags & DUMP_STACK_TRUNCATED && places->count && !PLACE_IMAGE(places->list[places->count - 1]))
		own->cut += stack->taken_count;
}

/* Aligned operator new of the library of C++ asks for a multiple of the alignment. caller: the place that did. */
static void count_rounded(struct report *r, const struct dump_stack *stack, uint64_t caller)
{
	char name[NAME_MAX + 1];

	image_short_name(&r->images.list[PLACE_IMAGE(caller)], name, sizeof name);
	if (!strncmp(name, "libstdc++.", 10) || !strncmp(name, "libc++.", 7))
		r->rounded += stack->taken_count;
}

void stack_counts_add(struct report *r, const struct dump_stack *stack, const struct stack_places *places,
                      uint64_t aligned_from)
{
	count_python(r, stack, places);
	count_java(r, stack, places);
	count_own_code(r, stack, places);
	if (PLACE_IMAGE(aligned_from))
		count_rounded(r, stack, aligned_from);
}
