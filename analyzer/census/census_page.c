/* SPDX-License-Identifier: MIT */
#include "census/census_page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/printable.h"
#include "base/size.h"

#define WIDTH 1000.0
#define ROW 24.0
#define BOXES 40u  /* of a row of boxes, and lines of a table: the largest; the others are one */
#define LETTER 6.3 /* how wide one is, at most */
#define NAME_TEXT 300u

/* Its hash stands in the policy of the page (the test compares them). */
#define STYLE                                                                                                          \
	":root{color-scheme:light dark}body{margin:0 auto;padding:12px 16px;max-width:1400px;"                         \
	"font:14px/1.45 system-ui,sans-serif}h1{font-size:18px}h2{font-size:15px;margin:18px 0 6px}"                   \
	"svg{display:block;width:100%}rect{stroke:#8886}text{font-size:11px;fill:#111}p{color:#7a828b}"                \
	"table{border-collapse:collapse}td,th{text-align:right;padding:2px 10px}"                                      \
	"td:last-child,th:last-child{text-align:left;overflow-wrap:anywhere}details{margin:4px 0}"
#define STYLE_HASH "46Hj2n6+/pPA/4ASsAtHv2Ooj3J9HMuPwuhDpSJcqDw="

/* Of one table, or of one kind of it. */
struct box {
	const char *kind, *name;
	double bytes, count;
	unsigned hue;
};

struct boxes {
	struct box *list; /* the largest first */
	size_t count;
	double bytes;
};

static const char *const malloc_kinds[] = { "heap", "arena", "mapped" };

static void put_escaped(FILE *out, const char *text, size_t letters)
{
	char clean[NAME_TEXT];

	printable_copy(text, clean, sizeof clean);
	for (size_t i = 0, shown = 0; clean[i]; i++) {
		shown += ((unsigned char)clean[i] & 0xc0) != 0x80;
		if (shown > letters)
			return;
		switch (clean[i]) {
		case '<': fputs("&lt;", out); break;
		case '>': fputs("&gt;", out); break;
		case '&': fputs("&amp;", out); break;
		case '"': fputs("&quot;", out); break;
		default: putc(clean[i], out);
		}
	}
}

static int compare(const void *a, const void *b)
{
	const struct box *x = a, *y = b;

	if (x->bytes < y->bytes || x->bytes > y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	const int kind = strcmp(x->kind, y->kind);
	return kind ? kind : strcmp(x->name, y->name);
}

static int gather(const struct census_input *c, uint32_t table, struct boxes *b)
{
	*b = (struct boxes){ .list = calloc(c->header->row_count + 1ull, sizeof *b->list) };
	if (!b->list)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->header->row_count; i++) {
		const struct census_row *r = &c->rows[i];
		if (r->table != table || !r->bytes)
			continue;
		b->list[b->count++] = (struct box){ .kind = c->strings + r->kind,
			                            .name = c->strings + r->name,
			                            .bytes = (double)r->bytes,
			                            .count = (double)r->count };
		b->bytes += (double)r->bytes;
	}
	if (b->count)
		qsort(b->list, b->count, sizeof *b->list, compare);
	for (size_t i = 0; i < b->count; i++)
		b->list[i].hue = (unsigned)(i * 137 + 210) % 360;
	return 0;
}

static bool is_malloc(const char *kind)
{
	for (size_t i = 0; i < sizeof malloc_kinds / sizeof *malloc_kinds; i++)
		if (!strcmp(kind, malloc_kinds[i]))
			return true;
	return false;
}

/* A box as wide as its part of what is drawn, with its name as far as there is room for that, and all of it at the
 * mouse. */
static void put_box(FILE *out, const struct box *box, double x, double width, double y)
{
	char bytes[SIZE_TEXT];
	const double letters = (width - 6) / LETTER;
	const bool both = box->kind[0] && box->name[0];

	if (width < 0.2)
		return;
	size_format(box->bytes, bytes);
	fprintf(out, "<rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%.0f\" fill=\"hsl(%u 45%% 72%%)\"><title>", x,
	        y, width, ROW - 1, box->hue);
	put_escaped(out, box->kind, NAME_TEXT);
	fputs(both ? ": " : "", out);
	put_escaped(out, box->name, NAME_TEXT);
	fprintf(out, " %s</title></rect>\n", bytes);
	if (letters < 3)
		return;
	fprintf(out, "<text x=\"%.2f\" y=\"%.0f\" pointer-events=\"none\">", x + 4, y + 16);
	const char *shown = box->name[0] ? box->name : box->kind;
	put_escaped(out, shown, (size_t)letters);
	if (strlen(shown) + 1 + strlen(bytes) <= (size_t)letters)
		fprintf(out, " %s", bytes);
	fputs("</text>\n", out);
}

/* A row of boxes from x on, of which all bytes together are so wide; those behind the largest are one. */
static void put_row(FILE *out, const struct boxes *b, double x, double width, double y)
{
	struct box rest = { .kind = "", .name = "others" };

	for (size_t i = 0; i < b->count; i++) {
		const double part = b->bytes > 0 ? b->list[i].bytes / b->bytes * width : 0;
		if (i >= BOXES) {
			rest.bytes += b->list[i].bytes;
			continue;
		}
		put_box(out, &b->list[i], x, part, y);
		x += part;
	}
	if (rest.bytes > 0)
		put_box(out, &rest, x, rest.bytes / b->bytes * width, y);
}

static void put_table(FILE *out, const struct boxes *b, const char *counted)
{
	char bytes[SIZE_TEXT];

	fprintf(out,
	        "<details><summary>%zu rows</summary><table><tr><th>bytes</th><th></th><th>%s</th><th>name</th></tr>\n",
	        b->count < BOXES ? b->count : BOXES, counted);
	for (size_t i = 0; i < b->count && i < BOXES; i++) {
		const struct box *box = &b->list[i];
		fprintf(out, "<tr><td>%s</td><td>%.1f %%</td><td>%.0f</td><td>", size_format(box->bytes, bytes),
		        100 * box->bytes / b->bytes, box->count);
		put_escaped(out, box->kind, NAME_TEXT);
		putc(' ', out);
		put_escaped(out, box->name, NAME_TEXT);
		fputs("</td></tr>\n", out);
	}
	fputs("</table></details>\n", out);
}

/* What is malloc's of all regions: what is live of it, and what was freed, where that is known. */
static void put_malloc(FILE *out, const struct census_header *h, double bytes, double x, double width)
{
	const double live = (double)h->malloc_live, freed = (double)h->malloc_freed;
	struct box parts[] = { { .kind = "", .name = "live", .bytes = live, .hue = 210 },
		               { .kind = "", .name = "freed, kept", .bytes = freed, .hue = 0 } };
	struct boxes row = { .list = parts, .count = 2, .bytes = live + freed };

	if (row.bytes > 0 && bytes > 0)
		put_row(out, &row, x, row.bytes < bytes ? row.bytes / bytes * width : width, 2 * ROW);
}

static const char *group_of(const struct box *box)
{
	return is_malloc(box->kind) ? "malloc" : box->kind;
}

static int compare_groups(const void *a, const void *b)
{
	const int group = strcmp(group_of(a), group_of(b));

	return group ? group : compare(a, b);
}

/* Regions of one kind, which follow each other. */
struct group {
	struct boxes own;
};

static int compare_sums(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->own.bytes < y->own.bytes || x->own.bytes > y->own.bytes)
		return x->own.bytes > y->own.bytes ? -1 : 1;
	return strcmp(group_of(x->own.list), group_of(y->own.list));
}

/* A kind from x on: it in the second row, what of it has names below. */
static void put_group(FILE *out, const struct group *g, double x, double width, const struct census_header *h)
{
	const struct box whole = {
		.kind = group_of(g->own.list), .name = "", .bytes = g->own.bytes, .hue = g->own.list[0].hue
	};

	put_box(out, &whole, x, width, ROW);
	if (!strcmp(whole.kind, "malloc"))
		put_malloc(out, h, g->own.bytes, x, width);
	else if (g->own.count > 1 || g->own.list[0].name[0])
		put_row(out, &g->own, x, width, 2 * ROW);
}

/* regions: sorted by kind, the largest of each first. Returns how many groups there are. */
static size_t find_groups(const struct boxes *regions, struct group *groups)
{
	size_t count = 0;

	for (size_t i = 0; i < regions->count; i++) {
		struct box *box = &regions->list[i];
		if (!i || strcmp(group_of(box), group_of(box - 1)) != 0)
			groups[count++] = (struct group){ .own = { .list = box } };
		groups[count - 1].own.count++;
		groups[count - 1].own.bytes += box->bytes;
	}
	qsort(groups, count, sizeof *groups, compare_sums);
	return count;
}

static int put_regions(FILE *out, const struct boxes *all, const struct census_header *h)
{
	const struct box whole = { .kind = "", .name = "resident", .bytes = all->bytes, .hue = 220 };
	AUTO_FREE struct box *list = calloc(all->count, sizeof *list);
	AUTO_FREE struct group *groups = calloc(all->count, sizeof *groups);
	const struct boxes regions = { list, all->count, all->bytes };
	double x = 0;

	if (!list || !groups)
		return -ENOMEM;
	memcpy(list, all->list, all->count * sizeof *list);
	qsort(list, all->count, sizeof *list, compare_groups);
	const size_t count = find_groups(&regions, groups);
	fprintf(out, "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n", WIDTH, 3 * ROW);
	put_box(out, &whole, 0, WIDTH, 0);
	for (size_t i = 0; i < count && i < BOXES; i++) {
		const double width = groups[i].own.bytes / all->bytes * WIDTH;
		put_group(out, &groups[i], x, width, h);
		x += width;
	}
	fputs("</svg>\n", out);
	return 0;
}

static int put_part(FILE *out, const struct census_input *c, uint32_t table, const char *title, const char *counted)
{
	struct boxes b;
	char bytes[SIZE_TEXT];
	int rc = gather(c, table, &b);

	if (rc == 0 && b.count) {
		fprintf(out, "<h2>%s: %s</h2>\n", title, size_format(b.bytes, bytes));
		if (table == CENSUS_TABLE_REGIONS) {
			rc = put_regions(out, &b, c->header);
		} else {
			fprintf(out, "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n", WIDTH, ROW);
			put_row(out, &b, 0, WIDTH, 0);
			fputs("</svg>\n", out);
		}
		put_table(out, &b, counted);
	}
	free(b.list);
	return rc;
}

static void put_head(FILE *out, const struct census_header *h, const char *name)
{
	char resident[SIZE_TEXT], swapped[SIZE_TEXT], when[40] = "";
	const time_t seconds = (time_t)(h->realtime_ns / 1000000000u);
	struct tm tm;

	if (localtime_r(&seconds, &tm))
		strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S %z", &tm);
	fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-" STYLE_HASH
	      "'; base-uri 'none'; form-action 'none'\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>census</title>\n"
	      "<style>" STYLE "</style></head><body>\n<h1>",
	      out);
	put_escaped(out, h->command, NAME_TEXT);
	fprintf(out, " (PID %" PRIu32 "): %s resident", h->pid, size_format((double)h->resident, resident));
	if (h->swapped)
		fprintf(out, ", %s in swap", size_format((double)h->swapped, swapped));
	fprintf(out, "</h1>\n<p>%s &middot; ", when);
	put_escaped(out, name, NAME_TEXT);
	fputs("</p>\n", out);
}

int census_page(const struct census_input *c, const char *name, FILE *out)
{
	put_head(out, c->header, name);
	int rc = put_part(out, c, CENSUS_TABLE_REGIONS, "Resident memory", "mappings");
	rc = rc ?: put_part(out, c, CENSUS_TABLE_TYPES, "Live blocks by type", "blocks");
	rc = rc ?: put_part(out, c, CENSUS_TABLE_HOLDERS, "Live blocks by holder (one of several)", "blocks");
	rc = rc ?: put_part(out, c, CENSUS_TABLE_SIZES, "Live blocks by size", "blocks");
	rc = rc ?: put_part(out, c, CENSUS_TABLE_LOST, "Nothing points to", "blocks");
	fputs("</body></html>\n", out);
	return rc;
}
