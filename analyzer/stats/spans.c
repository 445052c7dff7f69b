/* SPDX-License-Identifier: MIT */
#include "stats/spans.h"

#include <stdlib.h>

#include "base/grow.h"

void spans_init(struct spans *s, size_t moments)
{
	*s = (struct spans){ .moments = moments, .step = moments <= SPANS_MOMENTS_MAX };
}

size_t spans_steps(const struct spans *s)
{
	return s->step ? (s->moments + s->step - 1) / s->step : 0;
}

uint32_t spans_of(const struct spans *s, uint32_t stack)
{
	const uint32_t *first = map_find(&s->first_of, stack);

	return first ? *first : 0;
}

static uint64_t key_of(const struct span_cell *cell)
{
	return (uint64_t)cell->stack << 32 | (uint64_t)cell->born << 16 | cell->freed;
}

static int put_cell(struct spans *s, const struct span_cell *cell)
{
	const uint32_t *known = map_find(&s->cell_of, key_of(cell));

	if (known) {
		estimate_merge(&s->cells[*known].bytes, &cell->bytes);
		estimate_merge(&s->cells[*known].count, &cell->count);
		return 0;
	}
	if (!grow_list(s->cells, s->count) || map_put(&s->cell_of, key_of(cell), (uint32_t)s->count))
		return -ENOMEM;
	struct span_cell copy = *cell;
	copy.next = spans_of(s, cell->stack);
	s->cells[s->count++] = copy;
	return map_put(&s->first_of, cell->stack, (uint32_t)s->count);
}

/* Two steps become one. Where that is no help, there are none. */
static int coarsen(struct spans *s)
{
	struct span_cell *old = s->cells;
	size_t count = s->count, last = spans_steps(s) + 1;
	int r = 0;

	map_done(&s->cell_of);
	map_done(&s->first_of);
	s->cells = NULL;
	s->count = 0;
	s->step = s->step < s->moments ? 2 * s->step : 0;
	for (size_t i = 0; !r && s->step && i < count; i++) {
		struct span_cell cell = old[i];
		cell.born /= 2;
		if (cell.freed == last)
			cell.freed = (uint16_t)(spans_steps(s) + 1);
		else if (cell.freed != SPAN_LIVE)
			cell.freed = (uint16_t)((cell.freed - 1) / 2 + 1);
		r = put_cell(s, &cell);
	}
	free(old);
	return r;
}

int spans_add(struct spans *s, uint32_t stack, size_t born, size_t freed, uint64_t size, double p, double rest)
{
	int r = 0;

	while (!r && s->step && s->count >= SPANS_MAX)
		r = coarsen(s);
	if (r || !s->step)
		return r;
	struct span_cell cell = { .stack = stack };
	cell.born = (uint16_t)((born < s->moments ? born : s->moments - 1) / s->step);
	if (freed != SIZE_MAX)
		cell.freed = (uint16_t)((freed < s->moments ? freed / s->step : spans_steps(s)) + 1);
	estimate_add_part(&cell.bytes, (double)size, p, rest);
	if (!(rest > 0))
		estimate_add_block(&cell.count, p);
	return put_cell(s, &cell);
}

void spans_done(struct spans *s)
{
	free(s->cells);
	map_done(&s->cell_of);
	map_done(&s->first_of);
	*s = (struct spans){ 0 };
}
