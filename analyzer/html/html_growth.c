/* SPDX-License-Identifier: MIT */
#include "html/html_growth.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "stats/compare.h"
#include "report/unseen.h"

struct growth {
	struct estimate_sum plus, minus;
};

static void add(struct growth *into, const struct estimate_sum *plus, const struct estimate_sum *minus)
{
	estimate_merge(&into->plus, plus);
	estimate_merge(&into->minus, minus);
}

/* Of one figure, for each node with all that is below it. */
static void add_up(const struct html_tree *t, enum report_figure f, struct growth *growths)
{
	for (uint32_t i = t->count; i-- > 0;) {
		const struct html_node *n = &t->nodes[i];
		const uint32_t lists[] = { n->rows, n->small };
		for (int k = 0; k < 2; k++)
			for (uint32_t row = lists[k]; row; row = t->next_row[row - 1]) {
				const struct row_change *change = t->report->rows.list[row - 1].change;
				add(&growths[i], &change->plus[f], &change->minus[f]);
			}
		if (i != HTML_ROOT && n->kept)
			add(&growths[n->parent], &growths[i].plus, &growths[i].minus);
	}
}

static double two_sided(const struct report *r, struct growth *g, enum report_figure f)
{
	if (!report_is_bytes(f))
		compare_share_sizes(&g->plus, r->rate_now, &g->minus, unseen_rate_before(r));
	return fmin(1, 2 * (g->plus.value > g->minus.value ? compare_p_value(&g->plus, &g->minus)
	                                                   : compare_p_value(&g->minus, &g->plus)));
}

int html_growth_levels(const struct html_tree *t, double levels[FIGURE_COUNT], uint32_t *tested)
{
	uint32_t n = HTML_TESTED_MAX;
	AUTO_FREE uint32_t *nodes = html_tree_heaviest(t, &n);
	AUTO_FREE struct growth *growths = calloc(t->count, sizeof *growths);
	AUTO_FREE double *p = calloc(HTML_TESTED_MAX, sizeof *p);

	if (!nodes || !growths || !p)
		return -ENOMEM;
	*tested = n;
	for (int f = 0; f < FIGURE_COUNT; f++) {
		memset(growths, 0, t->count * sizeof *growths);
		add_up(t, f, growths);
		for (uint32_t i = 0; i < n; i++)
			p[i] = two_sided(t->report, &growths[nodes[i]], f);
		levels[f] = compare_threshold(p, n, 1 - t->report->options.confidence);
	}
	return 0;
}
