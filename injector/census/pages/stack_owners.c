/* SPDX-License-Identifier: MIT */
#include "census/pages/stack_owners.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "files/whole_io.h"
#include "base/order.h"

ORDER_BY(compare, struct stack_owner, start);

static bool is_stack(const struct maps *maps, const struct mapping *m)
{
	return !m->path[0] && !m->inode && !m->shared && m->prot & PROT_WRITE && m > maps->list &&
	       m[-1].end == m->start && m[-1].prot == PROT_NONE;
}

static void find_one(struct stack_owners *s, const struct target *t, const struct maps *maps,
                     const struct thread_info *thread)
{
	const struct mapping *m = thread->call.sp ? maps_find(maps, thread->call.sp) : NULL;
	struct stack_owner *place = &s->list[s->count];
	char path[64];

	if (m && !strcmp(m->path, "[stack]"))
		return;
	if (!m || !is_stack(maps, m)) {
		s->unknown += !thread->first;
		return;
	}
	snprintf(path, sizeof path, "/proc/%d/task/%d/comm", t->pid, thread->tid);
	if (whole_io_text(path, place->name, sizeof place->name) < 0)
		place->name[0] = '\0';
	place->name[strcspn(place->name, "\n")] = '\0';
	place->start = m->start;
	s->count++;
}

int stack_owners_find(struct stack_owners *s, const struct target *t, const struct maps *maps, struct err *e)
{
	AUTO_FREE struct thread_info *threads = NULL;

	*s = (struct stack_owners){ 0 };
	int rc = target_threads(t, &threads, &s->threads, e);
	if (rc < 0)
		return rc;
	s->list = calloc(s->threads + 1, sizeof *s->list);
	if (!s->list)
		return err_set(e, ENOMEM, "no memory for its %zu threads", s->threads);
	for (size_t i = 0; i < s->threads; i++)
		find_one(s, t, maps, &threads[i]);
	qsort(s->list, s->count, sizeof *s->list, compare);
	return 0;
}

const char *stack_owners_name(const struct stack_owners *s, const struct mapping *m)
{
	const struct stack_owner *found = s->count ? bsearch(&(struct stack_owner){ .start = m->start }, s->list,
	                                                     s->count, sizeof *s->list, compare)
	                                           : NULL;

	return found ? found->name : NULL;
}

void stack_owners_free(struct stack_owners *s)
{
	free(s->list);
	*s = (struct stack_owners){ 0 };
}
