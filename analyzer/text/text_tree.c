/* SPDX-License-Identifier: MIT */
/*
 * --tree: functions below their callers, outermost first, with what their stacks have in all. A node for each function
 * of a module below the same callers; frames are those that are shown (folding.h).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "text/text.h"

#define ROWS_MOST 5000u
#define LEAST_SHARE 0.01
#define DEEPEST 60u /* columns of indentation */
#define INDENT 2u
#define NAMES_AT 42u

struct node {
	char *name;
	uint32_t parent, child, sibling; /* 0: none */
	uint32_t image;
	struct report_row row; /* its sums */
};

struct tree {
	const struct text *text;
	struct node *list; /* the root first */
	size_t count;
	struct folded_stack stack;
	size_t rows, hidden; /* that are in it; nodes that are too small */
};

static const char *name_of(const struct tree *t, const struct folded_frame *f, char text[LINE_TEXT])
{
	char module[LINE_TEXT] = "";

	if (f->name[0]) {
		text_folded(f, text);
		return text;
	}
	if (f->location->function)
		return f->location->function;
	if (PLACE_IMAGE(f->place))
		text_module(&t->text->report->images.list[PLACE_IMAGE(f->place)], module);
	snprintf(text, LINE_TEXT, "%.512s%s0x%" PRIx64, module, module[0] ? "+" : "", PLACE_OFFSET(f->place));
	return text;
}

/* The child of a node, a new one if there is none of that name; 0: out of memory. */
static uint32_t child_of(struct tree *t, uint32_t parent, uint32_t image, const char *name)
{
	for (uint32_t i = t->list[parent].child; i; i = t->list[i].sibling)
		if (t->list[i].image == image && !strcmp(t->list[i].name, name))
			return i;
	char *copy = strdup(name);
	if (!copy || !grow_list(t->list, t->count)) {
		free(copy);
		return 0;
	}
	t->list[t->count] =
		(struct node){ .name = copy, .image = image, .parent = parent, .sibling = t->list[parent].child };
	t->list[parent].child = (uint32_t)t->count;
	return (uint32_t)t->count++;
}

static int add_row(struct tree *t, const struct report_row *row)
{
	char text[LINE_TEXT];
	uint32_t at = 0;

	row_merge(&t->list[0].row, row);
	if (row->unknown || !row->frame_count) {
		at = child_of(t, 0, 0, row->unknown ? "(stack not known)" : "(no frame is shown)");
		if (at)
			row_merge(&t->list[at].row, row);
		return at ? 0 : -ENOMEM;
	}
	if (folded_stack_make(&t->stack, t->text->report, row))
		return -ENOMEM;
	for (size_t i = t->stack.count; i-- > 0;) {
		const struct folded_frame *f = &t->stack.list[i];
		at = child_of(t, at, PLACE_IMAGE(f->place), name_of(t, f, text));
		if (!at)
			return -ENOMEM;
		row_merge(&t->list[at].row, row);
	}
	return 0;
}

static int make(struct tree *t)
{
	const struct report *r = t->text->report;
	int s = grow_list(t->list, t->count) ? 0 : -ENOMEM;

	if (!s)
		t->list[t->count++] = (struct node){ 0 };
	for (size_t i = 0; !s && i < r->rows.count && i < ROWS_MOST; i++) {
		report_want_symbols(r, i, r->rows.count < ROWS_MOST ? r->rows.count : ROWS_MOST);
		if (!r->rows.list[i].sum[r->options.sort].samples)
			continue;
		s = add_row(t, &r->rows.list[i]);
		t->rows++;
	}
	return s;
}

static void put_node(const struct tree *t, const struct node *n, size_t level)
{
	const struct report *r = t->text->report;
	enum report_figure f = r->options.sort;
	struct estimate x = report_estimate(r, &n->row, f);
	char value[40], range[96], share[16], name[LINE_TEXT];
	size_t indent = level < DEEPEST ? level : DEEPEST, room = t->text->columns - NAMES_AT;

	indent = indent < room / 2 ? indent : room / 2;
	text_name(r, n->name, room - indent, name);
	fprintf(t->text->out, " %9s  %-20s %7s  %*s%s\n", text_amount(f, x.value, value), text_interval(f, &x, range),
	        text_percent(report_share(r, &n->row, f), share), (int)indent, "", name);
}

static int compare_nodes(const void *a, const void *b, void *context)
{
	const struct tree *t = context;
	const enum report_figure sort = t->text->report->options.sort;
	const struct node *x = &t->list[*(const uint32_t *)a], *y = &t->list[*(const uint32_t *)b];
	double d = y->row.sum[sort].value - x->row.sum[sort].value;

	return d > 0 ? 1 : d < 0 ? -1 : strcmp(x->name, y->name);
}

/* The children of a node, the largest first. One that is alone below its caller stands at the same indentation. */
static void put_children(struct tree *t, uint32_t node, size_t level)
{
	AUTO_FREE uint32_t *kids = NULL;
	size_t count = 0;

	for (uint32_t i = t->list[node].child; i; i = t->list[i].sibling) {
		if (report_share(t->text->report, &t->list[i].row, t->text->report->options.sort) < LEAST_SHARE)
			t->hidden++;
		else if (grow_list(kids, count))
			kids[count++] = i;
	}
	if (count)
		qsort_r(kids, count, sizeof *kids, compare_nodes, t);
	level += node && count > 1 ? INDENT : 0;
	for (size_t i = 0; i < count; i++) {
		put_node(t, &t->list[kids[i]], level);
		put_children(t, kids[i], level);
	}
}

void text_tree(const struct text *text)
{
	const struct report *r = text->report;
	struct tree t = { .text = text };
	char level[40];

	snprintf(level, sizeof level, "%g %% interval", 100 * r->options.confidence);
	fprintf(text->out, "\n%s, functions below their callers\n %s%9s  %-20s %7s%s\n",
	        report_is_live(r->options.sort) ? "Held by" : "Allocated by", text->dim,
	        report_is_live(r->options.sort) ? "live" : "allocated", level, "share", text->plain);
	if (make(&t))
		fputs("    (out of memory)\n", text->out);
	else
		put_children(&t, 0, 0);
	if (t.hidden)
		fputs("    functions with less than 1 % are left out\n", text->out);
	if (t.rows < r->rows.count && t.rows >= ROWS_MOST)
		fprintf(text->out, "    of the first %u stacks\n", ROWS_MOST);
	folded_stack_done(&t.stack);
	for (size_t i = 0; i < t.count; i++)
		free(t.list[i].name);
	free(t.list);
}
