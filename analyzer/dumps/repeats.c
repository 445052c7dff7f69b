/* SPDX-License-Identifier: MIT */
#include "dumps/repeats.h"

#include <stdlib.h>

#include "dump/dump_reader.h"

struct state {
	uint64_t session, stamp;
	int number;
};

/* Sessions together, of each the latest state first. */
static int compare_states(const void *a, const void *b)
{
	const struct state *x = a;
	const struct state *y = b;

	if (x->session != y->session)
		return x->session < y->session ? -1 : 1;
	if (x->stamp != y->stamp)
		return x->stamp > y->stamp ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

static int read_state(const char *path, struct state *state)
{
	struct dump *dump;
	int r = dump_open(path, &dump, ERR_IGNORED);

	if (r)
		return r;
	state->session = dump_header(dump)->session_id;
	state->stamp = dump_header(dump)->clock_latest.stamp;
	dump_close(dump);
	return 0;
}

int repeats_find(char *const *paths, int count, struct repeat *repeats)
{
	struct state *states = calloc((size_t)count, sizeof *states);
	size_t known = 0, latest = 0;

	if (!states)
		return -ENOMEM;
	for (int i = 0; i < count; i++) {
		repeats[i] = (struct repeat){ .of = i };
		states[known].number = i;
		known += !read_state(paths[i], &states[known]) && states[known].session;
	}
	qsort(states, known, sizeof *states, compare_states);
	for (size_t i = 1; i < known; i++) {
		if (states[i].session != states[latest].session)
			latest = i;
		else
			repeats[states[i].number] = (struct repeat){ .of = states[latest].number,
				                                     .same = states[i].stamp == states[latest].stamp };
	}
	free(states);
	return 0;
}
