/* SPDX-License-Identifier: MIT */
#include "html/html_tree.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "html/html_data.h"
#include "text/text.h"

/* A hundred bytes each with all that belongs to one: stacks beyond them end at the nodes that there are. */
#define NODES_MAX 1500000u
/* What html_rows_text writes of several rows, as a rule. */
#define SMALL_TEXT 100u
#define SMALL_TEXT_CHANGES 320u

static uint32_t find_child(const struct html_tree *t, uint32_t parent, uint32_t frame)
{
	const uint32_t *known = map_find(&t->child_of, (uint64_t)parent << 32 | frame);

	return known ? *known : 0;
}

/* The child of a node, a new one if it has none of that function; the node itself where there is no room for more. */
static int descend(struct html_tree *t, uint32_t *node, uint32_t frame)
{
	uint32_t child = find_child(t, *node, frame);

	if (child) {
		*node = child;
		return 0;
	}
	if (t->count >= NODES_MAX || t->nodes[*node].depth >= HTML_DEPTH_MAX)
		return 1;
	if (!grow_list(t->nodes, t->count) || map_put(&t->child_of, (uint64_t)*node << 32 | frame, t->count))
		return -ENOMEM;
	struct html_node *parent = &t->nodes[*node];
	t->nodes[t->count] = (struct html_node){
		.parent = *node, .frame = frame, .sibling = parent->child, .depth = parent->depth + 1, .kept = true
	};
	parent->child = t->count;
	*node = t->count++;
	return 0;
}

/* The node of a stack. 1: it ends inside of the stack. */
static int find_node(struct html_tree *t, size_t i, uint32_t *node)
{
	const struct report_row *row = output_rows_row(&t->rows, i);
	enum output_gap gap = output_rows_gap(&t->rows, i);
	uint32_t frame;
	int s = 0;

	*node = HTML_ROOT;
	if (gap) {
		s = frame_table_word(&t->frames, output_gap_name(&t->rows, gap), &frame);
		s = s ?: descend(t, node, frame);
	}
	s = s || !row || !row->frame_count ? s : folded_stack_make(&t->stack, t->report, row);
	for (size_t k = row && row->frame_count ? t->stack.count : 0; !s && k-- > 0;) {
		s = frame_table_folded(&t->frames, &t->stack.list[k], &frame);
		s = s ?: descend(t, node, frame);
	}
	return s;
}

static double part_of(double value, double all)
{
	return all > 0 && value > 0 ? fmin(value / all, 1) : 0;
}

static double weigh(const struct report *r, const struct report_row *row)
{
	double most = 0;

	for (int f = 0; f < FIGURE_COUNT; f++) {
		most = fmax(most, part_of(row->sum[f].value, r->total.sum[f].value));
		if (report_compares(r))
			most = fmax(most, part_of(row->change->old[f].value, r->total.change->old[f].value));
	}
	return most;
}

static void add_row(struct html_tree *t, size_t i, uint32_t node, bool whole)
{
	const struct report *r = t->report;
	uint32_t *list = whole ? &t->nodes[node].rows : &t->nodes[node].small;

	t->next_row[i] = *list;
	*list = (uint32_t)i + 1;
	t->nodes[node].weight += weigh(r, &r->rows.list[i]);
	t->small_stacks += !whole;
}

static int add_rows(struct html_tree *t)
{
	const struct report *r = t->report;
	uint32_t node = HTML_ROOT;
	int s = 0;

	for (size_t i = 0; s >= 0 && i < r->rows.count; i++) {
		progress_at(r->options.progress, "adding up functions", i, r->rows.count);
		report_want_symbols(r, i, t->rows.shown);
		if (i <= t->rows.shown) /* those that are not shown have one node */
			s = find_node(t, i, &node);
		if (s >= 0)
			add_row(t, i, node, !s);
	}
	for (uint32_t i = t->count; i-- > 1;)
		t->nodes[t->nodes[i].parent].weight += t->nodes[i].weight;
	return s < 0 ? s : 0;
}

int html_tree_init(struct html_tree *t, const struct report *r)
{
	*t = (struct html_tree){ .report = r };
	output_rows_init(&t->rows, r);
	frame_table_init(&t->frames, r);
	t->next_row = calloc(r->rows.count + 1, sizeof *t->next_row);
	if (!t->next_row || !grow_list(t->nodes, t->count))
		return -ENOMEM;
	t->nodes[t->count++] = (struct html_node){ .kept = true };
	int s = frame_table_word(&t->frames, "(small stacks)", &t->small_frame);
	s = s ?: add_rows(t);
	t->kept = t->count;
	return s;
}

void html_tree_done(struct html_tree *t)
{
	frame_table_done(&t->frames);
	folded_stack_done(&t->stack);
	map_done(&t->child_of);
	free(t->nodes);
	free(t->next_row);
	*t = (struct html_tree){ 0 };
}

void html_tree_sum(const struct html_tree *t, uint32_t rows, struct html_sums *sums)
{
	*sums = (struct html_sums){ 0 };
	sums->row.change = t->report->rows.changes ? &sums->change : NULL;
	for (; rows; rows = t->next_row[rows - 1], sums->stacks++) {
		const struct report_row *row = &t->report->rows.list[rows - 1];
		row_merge(&sums->row, row);
		sums->row.unknown = sums->row.unknown || row->unknown;
	}
}

struct ranked_node {
	double weight;
	uint32_t node, bytes;
};

/* The heaviest first; of equals, parents first. */
static int compare_nodes(const void *a, const void *b)
{
	const struct ranked_node *x = a;
	const struct ranked_node *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

static uint32_t text_bytes(const struct html_tree *t, uint32_t rows)
{
	char text[HTML_ROWS_TEXT];

	return rows ? (uint32_t)html_rows_text(t, rows, text) : 0;
}

static struct ranked_node *rank(const struct html_tree *t)
{
	struct ranked_node *list = calloc(t->count, sizeof *list);
	uint32_t each = (uint32_t)html_node_bytes(t);

	for (uint32_t i = 0; list && i < t->count; i++) {
		const struct html_node *n = &t->nodes[i];
		list[i] = (struct ranked_node){
			n->weight, i, each + text_bytes(t, n->rows) + (n->small ? each + text_bytes(t, n->small) : 0)
		};
	}
	if (list)
		qsort(list, t->count, sizeof *list, compare_nodes);
	return list;
}

/* For bytes_of: a byte for each function, module and node. */
static size_t seen_bytes(const struct html_tree *t)
{
	return (size_t)t->frames.count + t->report->images.count + t->count;
}

/* What it takes to tell of the first ones. */
static size_t bytes_of(const struct html_tree *t, const struct ranked_node *list, uint32_t kept, unsigned char *seen)
{
	unsigned char *modules = seen + t->frames.count;
	unsigned char *parents = modules + t->report->images.count;
	size_t bytes = html_frame_bytes(t, t->small_frame);
	size_t small = t->report->rows.changes ? SMALL_TEXT_CHANGES : SMALL_TEXT;

	memset(seen, 0, seen_bytes(t));
	for (uint32_t i = 0; i < kept; i++) {
		const struct html_node *n = &t->nodes[list[i].node];
		uint32_t module = PLACE_IMAGE(t->frames.list[n->frame].place);
		bytes += list[i].bytes;
		bytes += seen[n->frame] ? 0 : html_frame_bytes(t, n->frame);
		bytes += modules[module] ? 0 : html_module_bytes(t, module);
		seen[n->frame] = modules[module] = 1;
		parents[list[i].node] = 1;
	}
	/* What is to be left out below a node that stays; what is left out already is known. */
	for (uint32_t i = kept; i < t->count; i++) {
		const struct html_node *n = &t->nodes[list[i].node];
		bytes += n->kept && parents[n->parent] == 1 ? small : 0;
		parents[n->parent] = parents[n->parent] ? 2 : 0;
	}
	return bytes;
}

/* Rows of nodes that are left out go to the nearest one that stays. */
static void leave_out(struct html_tree *t, const struct ranked_node *list, uint32_t kept)
{
	for (uint32_t i = kept; i < t->count; i++)
		t->nodes[list[i].node].kept = false;
	t->kept = kept;
	t->small_weight = kept < t->count ? list[kept].weight : 0;
	for (uint32_t i = t->count; i-- > 1;) {
		struct html_node *n = &t->nodes[i];
		uint32_t *lists[] = { &n->small, &n->rows };
		for (int k = 0; !n->kept && k < 2; k++) {
			uint32_t *small = &t->nodes[n->parent].small;
			for (uint32_t row = *lists[k], next; row; row = next) {
				next = t->next_row[row - 1];
				t->next_row[row - 1] = *small;
				*small = row;
				t->small_stacks += k == 1; /* the others are counted */
			}
			*lists[k] = 0;
		}
	}
}

/* How many of them fit. */
static uint32_t find_fit(const struct html_tree *t, const struct ranked_node *list, size_t bytes, unsigned char *seen)
{
	uint32_t low = 1, high = t->kept; /* the root stays */

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (bytes_of(t, list, middle, seen) <= bytes)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* What it takes to tell of the sums below is only known when they are made: then a few more nodes may have to go. */
int html_tree_fit(struct html_tree *t, size_t bytes)
{
	AUTO_FREE unsigned char *seen = malloc(seen_bytes(t));

	for (size_t goal = bytes;; goal -= goal / 8) {
		AUTO_FREE struct ranked_node *list = rank(t);
		if (!list || !seen)
			return -ENOMEM;
		if (t->kept <= 1 || bytes_of(t, list, t->kept, seen) <= bytes)
			return 0;
		leave_out(t, list, find_fit(t, list, goal, seen));
	}
}

void html_tree_coarse(const struct html_tree *t, struct json *j)
{
	char text[300], stacks[40], all[40];

	if (!t->small_stacks)
		return;
	snprintf(text, sizeof text,
	         "%s of %s stacks are summed up as (small stacks) below what they share with larger ones, to keep this "
	         "file "
	         "small: each function that is left out there has less than %.2g %% of every total",
	         text_grouped((double)t->small_stacks, stacks), text_grouped((double)t->report->rows.count, all),
	         100 * t->small_weight);
	json_string(j, "coarse", text);
}

uint32_t *html_tree_heaviest(const struct html_tree *t, uint32_t *count)
{
	AUTO_FREE struct ranked_node *list = rank(t);
	uint32_t n = t->kept < *count ? t->kept : *count;
	uint32_t *nodes = list ? calloc(n, sizeof *nodes) : NULL;

	for (uint32_t i = 0; nodes && i < n; i++)
		nodes[i] = list[i].node;
	*count = n;
	return nodes;
}
