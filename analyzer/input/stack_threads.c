/* SPDX-License-Identifier: MIT */
#include "input/stack_threads.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"

static void forget_dump(struct stack_threads *t)
{
	map_done(&t->part_of);
	map_done(&t->first_of);
	map_done(&t->name_of);
}

static struct thread_part *part_of(struct stack_threads *t, uint32_t stack, uint32_t tid)
{
	uint64_t key = (uint64_t)stack << 32 | tid;
	const uint32_t *known = map_find(&t->part_of, key);

	if (known)
		return &t->parts[*known];
	if (!grow_list(t->parts, t->count) || map_put(&t->part_of, key, (uint32_t)t->count))
		return NULL;
	t->parts[t->count++] = (struct thread_part){ .next = stack_threads_of(t, stack), .thread = tid };
	return map_put(&t->first_of, stack, (uint32_t)t->count) ? NULL : &t->parts[t->count - 1];
}

static void add(struct thread_share share[2], const struct sample *sample, double weight)
{
	share[0].value += (double)sample->size * weight;
	if (sample_is_later(sample))
		return;
	share[1].value += weight;
	share[0].samples++;
	share[1].samples++;
}

int stack_threads_add(struct stack_threads *t, uint32_t stack, const struct sample *sample, double weight, bool live,
                      bool allocated)
{
	if (t->full || (!live && !allocated))
		return 0;
	struct thread_part *part = part_of(t, stack, sample->tid);
	if (!part)
		return -ENOMEM;
	if (live)
		add(part->share + FIGURE_LIVE_BYTES, sample, weight);
	if (allocated)
		add(part->share + FIGURE_ALLOCATED_BYTES, sample, weight);
	t->full = t->count >= STACK_THREADS_MAX;
	return 0;
}

uint32_t stack_threads_of(const struct stack_threads *t, uint32_t stack)
{
	const uint32_t *first = map_find(&t->first_of, stack);

	return first ? *first : 0;
}

static int set_name(struct stack_threads *t, uint32_t tid, const char *name)
{
	uint32_t number;
	char id[20]; /* no mere number, which -tagfocus of pprof takes for a range */

	snprintf(id, sizeof id, "tid %" PRIu32, tid);
	int s = string_table_add(&t->names, name && name[0] ? name : id, &number);
	return s ?: map_put(&t->name_of, tid, number);
}

/* The last one of several is its name. */
static int on_thread(void *arg, const struct dump_thread *thread)
{
	return thread->tid ? set_name(arg, thread->tid, thread->name) : 0;
}

int stack_threads_finish(struct stack_threads *t, struct dump *dump)
{
	uint32_t none;
	int s = string_table_add(&t->names, "", &none);

	s = s ?: dump_each_thread(dump, on_thread, t);
	for (; !s && t->named < t->count; t->named++) {
		struct thread_part *part = &t->parts[t->named];
		if (part->thread && !map_find(&t->name_of, part->thread))
			s = set_name(t, part->thread, NULL);
		if (!s)
			part->thread = part->thread ? *map_find(&t->name_of, part->thread) : none;
	}
	forget_dump(t);
	return s;
}

void stack_threads_restart(struct stack_threads *t)
{
	t->count = t->named;
	forget_dump(t);
}

void stack_threads_done(struct stack_threads *t)
{
	forget_dump(t);
	free(t->parts);
	string_table_done(&t->names);
	*t = (struct stack_threads){ 0 };
}
