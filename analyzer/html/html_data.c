/* SPDX-License-Identifier: MIT */
#include "html/html_data.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "filter/fold.h"
#include "html/html_tree.h"

#define ERROR_DIGITS 4
#define COUNT_DIGITS 7
#define WEIGHT_DIGITS 6
#define WHOLE_MAX 1e14
#define NUMBER_TEXT 24
#define NAME_BYTES 1000u /* of longer names the end is cut off */
#define FRAME_BYTES 28u  /* of numbers and punctuation */
#define CUT_MARK "\u2026"

/* digits: how many count, 0: those of whole numbers. */
static char *put_number(char *out, double value, int digits)
{
	value = isfinite(value) ? value : 0;
	if (value == 0) {
		memcpy(out, "0,", 3);
		return out + 2;
	}
	if (digits) {
		double unit = pow(10, floor(log10(fabs(value))) - (digits - 1));
		double rounded = round(value / unit) * unit;
		value = isfinite(rounded) ? rounded : value;
	}
	if (fabs(value) < WHOLE_MAX && (!digits || fabs(value) >= pow(10, digits - 1)))
		return out + snprintf(out, NUMBER_TEXT, "%.0f,", value);
	return out + snprintf(out, NUMBER_TEXT, "%.*g,", digits ? digits : COUNT_DIGITS, value);
}

/* Of bytes and of blocks. */
static char *put_pair(char *out, const struct estimate_sum pair[2])
{
	const struct estimate_sum *b = &pair[0], *c = &pair[1];

	out = put_number(out, b->value, 0);
	out = put_number(out, sqrt(b->variance), ERROR_DIGITS);
	out = put_number(out, b->seen, 0);
	out = put_number(out, c->value, COUNT_DIGITS);
	return put_number(out, sqrt(c->variance), ERROR_DIGITS);
}

static char *put_sums(char *out, const struct estimate_sum *sums, enum report_figure bytes)
{
	out = put_number(out, (double)sums[bytes].samples, 0);
	if (sums[bytes].samples)
		out = put_pair(out, &sums[bytes]);
	return put_number(out, sums[bytes + 1].next, ERROR_DIGITS);
}

size_t html_cell_text(const struct estimate_sum *bytes, const struct estimate_sum *count, char text[HTML_SUMS_TEXT])
{
	char *out = put_number(text, (double)bytes->samples, 0);

	if (bytes->samples == 1) {
		out = put_number(out, bytes->seen, 0);
		return (size_t)(put_number(out, count->value, WEIGHT_DIGITS) - text);
	}
	out = put_number(out, bytes->value, 0);
	out = put_number(out, sqrt(bytes->variance), ERROR_DIGITS);
	out = put_number(out, bytes->seen, 0);
	out = put_number(out, count->value, COUNT_DIGITS);
	out = put_number(out, sqrt(count->variance), ERROR_DIGITS);
	return (size_t)(put_number(out, count->next, WEIGHT_DIGITS) - text);
}

/* Blocks of two sessions are never the same. */
bool html_all_has_come(const struct html_tree *t)
{
	return t->report->options.diff && !t->report->same_session;
}

size_t html_node_bytes(const struct html_tree *t)
{
	char text[NUMBER_TEXT];

	/* Up to three digits for the levels, and two commas. */
	return (size_t)snprintf(text, sizeof text, "%" PRIu64, 2 * (uint64_t)t->frames.count) + 5;
}

size_t html_rows_text(const struct html_tree *t, uint32_t rows, char text[HTML_ROWS_TEXT])
{
	const struct report *r = t->report;
	struct html_sums sums;
	char *out = text;

	html_tree_sum(t, rows, &sums);
	out = put_number(out, (double)sums.stacks, 0);
	out = put_number(out, 2 * (double)sums.row.lost[0].samples + sums.row.unknown, 0);
	if (sums.row.lost[0].samples)
		out = put_number(put_pair(out, sums.row.lost), sums.row.lost[1].next, ERROR_DIGITS);
	for (int f = 0; f < FIGURE_COUNT; f += 2)
		out = put_sums(out, sums.row.sum, f);
	for (int f = 0; report_compares(r) && !html_all_has_come(t) && f < FIGURE_COUNT; f += 2)
		out = put_sums(out, sums.change.plus, f);
	for (int f = 0; report_compares(r) && f < FIGURE_COUNT; f += 2)
		out = put_sums(out, sums.change.minus, f);
	return (size_t)(out - text);
}

/* What of a name is shown; whole characters. */
static size_t shown_bytes(const char *name)
{
	size_t n = strnlen(name, NAME_BYTES + 1);

	if (n <= NAME_BYTES)
		return n;
	for (n = NAME_BYTES; n && ((unsigned char)name[n] & 0xc0) == 0x80;)
		n--;
	return n;
}

static const char *name_of(const struct html_tree *t, uint32_t frame)
{
	return t->frames.names.list[t->frames.list[frame].name];
}

static const char *file_of(const struct html_tree *t, uint32_t frame)
{
	const char *file = t->frames.list[frame].file;
	const char *slash = file ? strrchr(file, '/') : NULL;

	return slash ? slash + 1 : file ? file : "";
}

/* As JSON has it, and what is no UTF-8 at its longest. */
static size_t quoted_bytes(const char *text, size_t n)
{
	size_t bytes = 4;

	for (size_t i = 0; i < n; i++)
		bytes += text[i] == '"' || text[i] == '\\'                     ? 2
		         : text[i] < 0x20 || text[i] == '<' || text[i] == 0x7f ? 6
		                                                               : 1;
	return bytes;
}

size_t html_name_bytes(const char *name)
{
	return quoted_bytes(name, shown_bytes(name));
}

size_t html_frame_bytes(const struct html_tree *t, uint32_t frame)
{
	return FRAME_BYTES + html_name_bytes(name_of(t, frame)) + html_name_bytes(file_of(t, frame));
}

size_t html_module_bytes(const struct html_tree *t, uint32_t image)
{
	const char *path = t->report->images.list[image].path;

	return image && path ? html_name_bytes(path) : 0;
}

int html_put_name(struct json *j, const char *name, struct name_text *buffer)
{
	char text[NAME_BYTES + sizeof CUT_MARK];
	size_t n = shown_bytes(name);

	snprintf(text, sizeof text, "%.*s%s", (int)n, name, name[n] ? CUT_MARK : "");
	const char *clean = frame_name_clean(buffer, text);
	if (clean)
		json_string(j, NULL, clean);
	return clean ? 0 : -ENOMEM;
}

/* The node that comes after this one, with all callers before what they call; HTML_ROOT: it was the last. */
static uint32_t next_node(const struct html_tree *t, uint32_t node)
{
	uint32_t next = t->nodes[node].child;

	for (;;) {
		for (; next; next = t->nodes[next].sibling)
			if (t->nodes[next].kept)
				return next;
		if (node == HTML_ROOT)
			return HTML_ROOT;
		next = t->nodes[node].sibling;
		node = t->nodes[node].parent;
	}
}

static int put_frame(const struct html_tree *t, struct json *j, uint32_t frame, struct name_text *buffer)
{
	const struct frame_entry *entry = &t->frames.list[frame];

	json_array_line(j, NULL);
	int s = html_put_name(j, name_of(t, frame), buffer);
	json_unsigned(j, NULL, PLACE_IMAGE(entry->place));
	s = s ?: html_put_name(j, file_of(t, frame), buffer);
	json_number(j, NULL, entry->line);
	json_unsigned(j, NULL,
	              !t->report->options.show_std && !source_places_have(&t->report->images, entry->place) &&
	                      fold_is_standard(name_of(t, frame), NULL));
	json_array_end(j);
	return s;
}

/* With their numbers, those that functions name. */
static int put_modules(const struct html_tree *t, struct json *j, const unsigned char *named, struct name_text *buffer)
{
	const struct images *images = &t->report->images;
	int s = 0;

	json_array_line(j, "modules");
	for (uint32_t i = 1; !s && i < images->count; i++) {
		if (!named[i])
			continue;
		json_array_line(j, NULL);
		json_unsigned(j, NULL, i);
		s = html_put_name(j, images->list[i].path, buffer);
		json_array_end(j);
	}
	json_array_end(j);
	return s;
}

/* The one that stands for small stacks, then the others in the order in which nodes name them first. */
int html_data_frames(const struct html_tree *t, struct json *j, uint32_t *order)
{
	AUTO_FREE unsigned char *named = calloc(t->report->images.count + 1, 1);
	struct name_text buffer = { 0 };
	uint32_t node = HTML_ROOT, count = 0;
	int s = named ? 0 : -ENOMEM;

	memset(order, 0, t->frames.count * sizeof *order);
	json_array_line(j, "frames");
	do {
		uint32_t frame = node == HTML_ROOT ? t->small_frame : t->nodes[node].frame;
		if (!s && !order[frame]) {
			order[frame] = ++count;
			named[PLACE_IMAGE(t->frames.list[frame].place)] = 1;
			s = put_frame(t, j, frame, &buffer);
		}
		node = next_node(t, node);
	} while (!s && node != HTML_ROOT);
	json_array_end(j);
	s = s ?: put_modules(t, j, named, &buffer);
	frame_name_done(&buffer);
	return s;
}

/* What ends at a node, and, as another one below it, what was left out there. */
static void put_node(const struct html_tree *t, const uint32_t *order, uint32_t node, uint32_t *depth, FILE *out)
{
	const struct html_node *n = &t->nodes[node];
	char text[HTML_ROWS_TEXT];

	if (node != HTML_ROOT) {
		fprintf(out, "%u,%u,", 2 * (order[n->frame] - 1) + (n->rows != 0), *depth + 1 - n->depth);
		*depth = n->depth;
		if (n->rows)
			fwrite(text, 1, html_rows_text(t, n->rows, text), out);
	}
	if (n->small) {
		fprintf(out, "1,%u,", *depth - n->depth);
		*depth = n->depth + 1;
		fwrite(text, 1, html_rows_text(t, n->small, text), out);
	}
}

void html_data_nodes(const struct html_tree *t, const uint32_t *order, FILE *out)
{
	uint32_t node = HTML_ROOT, depth = 0;

	putc('[', out);
	do {
		put_node(t, order, node, &depth, out);
		node = next_node(t, node);
	} while (node != HTML_ROOT);
	fputs("-1]", out);
}

void html_data_each(const struct html_tree *t, void (*put)(void *arg, uint32_t rows), void *arg)
{
	uint32_t node = HTML_ROOT;

	do {
		const struct html_node *n = &t->nodes[node];
		if (node != HTML_ROOT && n->rows)
			put(arg, n->rows);
		if (n->small)
			put(arg, n->small);
		node = next_node(t, node);
	} while (node != HTML_ROOT);
}
