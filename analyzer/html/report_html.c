/* SPDX-License-Identifier: MIT */
#include "html/report_html.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "html/html_data.h"
#include "html/html_growth.h"
#include "html/html_head.h"
#include "html/html_leaks.h"
#include "html/html_machine.h"
#include "html/html_page.h"
#include "html/html_spans.h"
#include "html/html_table.h"
#include "html/html_tree.h"

/* What the page writes beside the tree: growth, how much was summed up, and where leaks are. */
#define REST_BYTES (2000u + HTML_LEAK_ROWS * HTML_LEAK_ENTRY_BYTES)

/* A part whose length decides how much of the next ones fits: what comes before the tree, and the tree. */
struct part {
	char *text;
	size_t bytes;
};

static void put_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '<': fputs("&lt;", out); break;
		case '>': fputs("&gt;", out); break;
		case '&': fputs("&amp;", out); break;
		default: putc(*text, out);
		}
	}
}

static int begin(const struct report *r, const char *name, struct part *b)
{
	struct json j = { .in_markup = true };
	AUTO_FREE char *text = html_text(r, name);
	FILE *out = text ? open_memstream(&b->text, &b->bytes) : NULL;

	if (!out)
		return -ENOMEM;
	fputs(html_page_begin, out);
	put_escaped(out, text);
	fputs(html_page_head, out);
	j.out = out;
	int s = html_head(r, name, HTML_TABLE_BYTES, NULL, &j);
	return fclose(out) ? -ENOMEM : s;
}

static int put_growth(const struct html_tree *t, struct json *j)
{
	double levels[FIGURE_COUNT];
	uint32_t tested;
	int s = html_growth_levels(t, levels, &tested);

	if (s)
		return s;
	json_unsigned(j, "tested", tested);
	json_bool(j, "allHasCome", html_all_has_come(t));
	json_array_line(j, "growthQuantiles");
	for (int f = 0; f < FIGURE_COUNT; f++)
		json_number(j, NULL, html_quantile(levels[f]));
	json_array_end(j);
	return 0;
}

static int put_tree(const struct html_tree *t, FILE *out)
{
	struct json j = { .out = out, .in_markup = true };
	AUTO_FREE uint32_t *order = calloc(t->frames.count, sizeof *order);

	if (!order)
		return -ENOMEM;
	fputs(html_page_frames, out);
	json_object(&j, NULL);
	html_tree_coarse(t, &j);
	int s = report_compares(t->report) ? put_growth(t, &j) : 0;
	s = s ?: html_data_frames(t, &j, order);
	s = s ?: html_leak_entries(t, &j);
	if (s)
		return s;
	json_object_end(&j);
	fputs(html_page_nodes, out);
	html_data_nodes(t, order, out);
	return 0;
}

/* Most of the page, for its size. */
static int make_tree(const struct html_tree *t, struct part *b)
{
	FILE *out = open_memstream(&b->text, &b->bytes);
	int s = out ? put_tree(t, out) : -ENOMEM;

	return out && fclose(out) ? -ENOMEM : s;
}

static int put_all(const struct html_tree *t, const struct part *b, const struct part *machine, size_t bytes, FILE *out)
{
	struct part tree = { 0 };
	struct html_spans spans = { 0 };
	int s = make_tree(t, &tree);

	s = s ?: html_spans_make(t, tree.bytes < bytes ? bytes - tree.bytes : 0, &spans);
	if (!s) {
		fwrite(b->text, 1, b->bytes, out);
		fwrite(tree.text, 1, tree.bytes, out);
		fprintf(out, "%s%zu%s%s%s", html_page_step, spans.step, html_page_spans, spans.text ? spans.text : "[]",
		        html_page_parts);
		fwrite(machine->text ? machine->text : "", 1, machine->bytes, out);
		fprintf(out, "%s%s%s", html_page_scripts, machine->text ? html_page_machine : "", html_page_end);
	}
	free(tree.text);
	free(spans.text);
	return s;
}

int report_html(const struct report *r, const char *name, FILE *out)
{
	const size_t fixed = strlen(html_page_frames) + strlen(html_page_nodes) + strlen(html_page_step) +
	                     strlen(html_page_spans) + strlen(html_page_parts) + strlen(html_page_scripts) +
	                     strlen(html_page_machine) + strlen(html_page_end) + REST_BYTES;
	struct part b = { 0 }, machine = { 0 };
	struct html_tree tree = { 0 };
	int s = begin(r, name, &b);
	if (!s && r->options.processes)
		s = html_machine(r, &machine.text, &machine.bytes);
	size_t used = fixed + b.bytes + machine.bytes, bytes = used < HTML_BYTES ? HTML_BYTES - used : 0;
	size_t kept = html_spans_bytes(r);

	s = s ?: html_tree_init(&tree, r);
	s = s ?: html_tree_fit(&tree, bytes > kept ? bytes - kept : 0);
	s = s ?: put_all(&tree, &b, &machine, bytes, out);
	html_tree_done(&tree);
	free(b.text);
	free(machine.text);
	return s;
}
