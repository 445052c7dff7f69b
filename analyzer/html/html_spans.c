/* SPDX-License-Identifier: MIT */
#include "html/html_spans.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "html/html_data.h"

#define BYTES_MAX 2600000u
#define CELL_BYTES 80u
#define LIST_BYTES 8u

/* The cells of some rows, which are added up. */
struct cells {
	const struct html_tree *tree;
	struct span_cell *list;
	size_t factor; /* so many steps of the report's spans become one */
	FILE *out;
};

static int compare_cells(const void *a, const void *b)
{
	const struct span_cell *x = a;
	const struct span_cell *y = b;

	return x->born != y->born ? (x->born > y->born) - (x->born < y->born)
	                          : (x->freed > y->freed) - (x->freed < y->freed);
}

static struct span_cell coarse(const struct cells *c, const struct span_cell *cell)
{
	const struct spans *s = &c->tree->report->spans;
	size_t steps = (spans_steps(s) + c->factor - 1) / c->factor;
	struct span_cell to = *cell;

	to.born = (uint16_t)(cell->born / c->factor);
	if (cell->freed > spans_steps(s))
		to.freed = (uint16_t)(steps + 1);
	else if (cell->freed != SPAN_LIVE)
		to.freed = (uint16_t)((cell->freed - 1u) / c->factor + 1);
	return to;
}

static size_t collect(struct cells *c, uint32_t rows)
{
	const struct html_tree *t = c->tree;
	size_t n = 0, count = 0;

	for (; rows; rows = t->next_row[rows - 1])
		for (uint32_t i = t->report->rows.list[rows - 1].spans; i; i = t->report->spans.cells[i - 1].next)
			c->list[n++] = coarse(c, &t->report->spans.cells[i - 1]);
	qsort(c->list, n, sizeof *c->list, compare_cells);
	for (size_t i = 0; i < n; i++) {
		if (count && !compare_cells(&c->list[count - 1], &c->list[i])) {
			estimate_merge(&c->list[count - 1].bytes, &c->list[i].bytes);
			estimate_merge(&c->list[count - 1].count, &c->list[i].count);
		} else {
			c->list[count++] = c->list[i];
		}
	}
	return count;
}

static void put_rows(void *arg, uint32_t rows)
{
	struct cells *c = arg;
	size_t n = collect(c, rows);

	fprintf(c->out, "%zu,", n);
	for (size_t i = 0; i < n; i++) {
		char text[HTML_SUMS_TEXT];
		fprintf(c->out, "%u,%u,", c->list[i].born, c->list[i].freed);
		fwrite(text, 1, html_cell_text(&c->list[i].bytes, &c->list[i].count, text), c->out);
	}
}

static int put_all(const struct html_tree *t, size_t factor, char **text, size_t *bytes)
{
	const struct spans *s = &t->report->spans;
	struct cells c = { .tree = t, .factor = factor, .list = calloc(s->count + 1, sizeof *c.list) };

	c.out = c.list ? open_memstream(text, bytes) : NULL;
	if (c.out) {
		putc('[', c.out);
		html_data_each(t, put_rows, &c);
		fputs("-1]", c.out);
	}
	int r = c.out && !fclose(c.out) ? 0 : -ENOMEM;
	free(c.list);
	return r;
}

size_t html_spans_bytes(const struct report *r)
{
	size_t bytes = r->spans.count * CELL_BYTES + 2 * r->rows.count * LIST_BYTES;

	return !spans_steps(&r->spans) ? 0 : bytes < BYTES_MAX ? bytes : BYTES_MAX;
}

int html_spans_make(const struct html_tree *t, size_t bytes, struct html_spans *spans)
{
	size_t steps = spans_steps(&t->report->spans), size;

	*spans = (struct html_spans){ 0 };
	for (size_t factor = 1; factor < steps; factor *= 2) {
		char *text = NULL;
		int r = put_all(t, factor, &text, &size);
		if (!r && size <= bytes) {
			*spans = (struct html_spans){ .text = text, .step = factor * t->report->spans.step };
			return 0;
		}
		free(text);
		if (r)
			return r;
	}
	return 0;
}
