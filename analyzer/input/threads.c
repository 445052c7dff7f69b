/* SPDX-License-Identifier: MIT */
#include "input/threads.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

struct thread_sum *threads_get(struct threads *t, uint32_t tid)
{
	const uint32_t *known = map_find(&t->thread_of, tid);

	if (known)
		return &t->list[*known];
	if (t->count > THREADS_MAX)
		return &t->list[THREADS_MAX];
	if (!grow_list(t->list, t->count))
		return NULL;
	bool others = t->count == THREADS_MAX;
	if (!others && map_put(&t->thread_of, tid, (uint32_t)t->count))
		return NULL;
	struct thread_sum *sum = &t->list[t->count++];
	*sum = (struct thread_sum){ .tid = others ? 0 : tid, .others = others };
	return sum;
}

static int on_thread(void *arg, const struct dump_thread *thread)
{
	struct threads *t = arg;
	const uint32_t *known = map_find(&t->thread_of, thread->tid);

	if (known)
		memcpy(t->list[*known].name, thread->name, sizeof thread->name);
	return 0;
}

int threads_read_names(struct threads *t, struct dump *dump)
{
	return dump_each_thread(dump, on_thread, t);
}

void threads_done(struct threads *t)
{
	free(t->list);
	map_done(&t->thread_of);
	*t = (struct threads){ 0 };
}
