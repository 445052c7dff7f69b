/* SPDX-License-Identifier: MIT */
#include "census/census_growth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/line_width.h"
#include "base/printable.h"
#include "base/size.h"

#define COLUMNS 100u

static const char *const titles[] = { [CENSUS_TABLE_REGIONS] = "resident memory",
	                              [CENSUS_TABLE_SIZES] = "live blocks by size",
	                              [CENSUS_TABLE_TYPES] = "live blocks by type",
	                              [CENSUS_TABLE_HOLDERS] = "live blocks by holder",
	                              [CENSUS_TABLE_LOST] = "nothing points to" };
static const char *const names[] = { [CENSUS_TABLE_REGIONS] = "regions",
	                             [CENSUS_TABLE_SIZES] = "sizes",
	                             [CENSUS_TABLE_TYPES] = "types",
	                             [CENSUS_TABLE_HOLDERS] = "holders",
	                             [CENSUS_TABLE_LOST] = "unreachable" };

static int compare_keys(const void *a, const void *b)
{
	const struct growth_row *x = a, *y = b;

	if (x->table != y->table)
		return x->table < y->table ? -1 : 1;
	const int kind = strcmp(x->kind, y->kind);
	return kind ? kind : strcmp(x->name, y->name);
}

static double change_of(const struct growth_row *r)
{
	return (double)r->new_bytes - (double)r->old_bytes;
}

static int compare_changes(const void *a, const void *b)
{
	const struct growth_row *x = a, *y = b;

	if (x->table != y->table)
		return x->table < y->table ? -1 : 1;
	if (change_of(x) < change_of(y) || change_of(x) > change_of(y))
		return change_of(x) > change_of(y) ? -1 : 1;
	return compare_keys(a, b);
}

/* Who holds what, and what nothing points to, is in a file only where it was asked for and known. */
static bool is_known(const struct census_input *c, uint32_t table)
{
	if (table < CENSUS_TABLE_HOLDERS)
		return true;
	for (uint32_t i = 0; i < c->header->row_count; i++)
		if (c->rows[i].table == table)
			return true;
	return false;
}

/* Those of tables that the other one knows, too: what is not known has not grown from nothing. */
static size_t add_rows(struct growth_row *rows, const struct census_input *c, const struct census_input *other,
                       bool new)
{
	const bool holders = is_known(other, CENSUS_TABLE_HOLDERS), lost = is_known(other, CENSUS_TABLE_LOST);
	size_t count = 0;

	for (uint32_t i = 0; i < c->header->row_count; i++) {
		const struct census_row *r = &c->rows[i];
		struct growth_row row = { .table = r->table,
			                  .kind = c->strings + r->kind,
			                  .name = c->strings + r->name };
		if (r->table < CENSUS_TABLE_REGIONS || r->table > CENSUS_TABLE_LOST ||
		    (r->table == CENSUS_TABLE_HOLDERS && !holders) || (r->table == CENSUS_TABLE_LOST && !lost))
			continue;
		if (r->table == CENSUS_TABLE_LOST && !*row.kind && !*row.name) /* it only says that it is known */
			continue;
		*(new ? &row.new_count : &row.old_count) = r->count;
		*(new ? &row.new_bytes : &row.old_bytes) = r->bytes;
		rows[count++] = row;
	}
	return count;
}

/* Rows of one key are added up, also where a file has several. */
static void join(struct census_growth *g)
{
	size_t kept = 0;

	for (size_t i = 1; i < g->count; i++) {
		struct growth_row *last = &g->rows[kept];
		const struct growth_row *r = &g->rows[i];
		if (compare_keys(last, r) != 0) {
			g->rows[++kept] = *r;
			continue;
		}
		last->old_count += r->old_count;
		last->old_bytes += r->old_bytes;
		last->new_count += r->new_count;
		last->new_bytes += r->new_bytes;
	}
	g->count = g->count ? kept + 1 : 0;
}

int census_growth_make(struct census_growth *g, const struct census_input *old, const struct census_input *new,
                       struct err *e)
{
	const size_t room = (size_t)old->header->row_count + new->header->row_count;

	*g = (struct census_growth){ .old = old, .new = new, .rows = calloc(room + 1, sizeof *g->rows) };
	if (!g->rows)
		return err_set(e, ENOMEM, "out of memory");
	g->count = add_rows(g->rows, old, new, false);
	g->count += add_rows(g->rows + g->count, new, old, true);
	qsort(g->rows, g->count, sizeof *g->rows, compare_keys);
	join(g);
	qsort(g->rows, g->count, sizeof *g->rows, compare_changes);
	return 0;
}

void census_growth_done(struct census_growth *g)
{
	free(g->rows);
	*g = (struct census_growth){ 0 };
}

static bool same_process(const struct census_growth *g)
{
	return g->old->header->pid == g->new->header->pid && g->old->header->start_ticks == g->new->header->start_ticks;
}

static double minutes_of(const struct census_growth *g)
{
	return ((double)g->new->header->realtime_ns - (double)g->old->header->realtime_ns) / 60e9;
}

static void put_change(FILE *out, const char *what, uint64_t old, uint64_t new)
{
	char before[SIZE_TEXT], now[SIZE_TEXT], change[SIZE_TEXT + 1];

	fprintf(out, "  %-16s %11s -> %11s  %12s\n", what, size_format((double)old, before),
	        size_format((double)new, now), size_format_change((double)new - (double)old, change));
}

static void put_head(const struct census_growth *g, FILE *out)
{
	const struct census_header *o = g->old->header, *n = g->new->header;
	const double minutes = minutes_of(g), change = (double)n->resident - (double)o->resident;
	char command[64], text[SIZE_TEXT + 1], rate[SIZE_TEXT + 1];

	printable_copy(n->command, command, sizeof command);
	fprintf(out, "%s (PID %u): %s in %.1f minutes", command, n->pid, size_format_change(change, text), minutes);
	if (minutes > 0)
		fprintf(out, ", %s/min", size_format_change(change / minutes, rate));
	fputs("\n", out);
	if (!same_process(g))
		fputs("These are two processes: what differs is no growth.\n", out);
	else if (minutes < 0)
		fputs("The first one is the later one: growth is shown backwards in time.\n", out);
	put_change(out, "resident", o->resident, n->resident);
	put_change(out, "swapped", o->swapped, n->swapped);
	put_change(out, "live in malloc", o->malloc_live, n->malloc_live);
	put_change(out, "freed, kept", o->malloc_freed, n->malloc_freed);
}

static void put_row(const struct growth_row *r, FILE *out)
{
	char change[SIZE_TEXT + 1], now[SIZE_TEXT], line[512];

	int n = snprintf(line, sizeof line, "%12s %+14.0f %11s  ", size_format_change(change_of(r), change),
	                 (double)r->new_count - (double)r->old_count, size_format((double)r->new_bytes, now));
	snprintf(line + n, sizeof line - (size_t)n, "%s%s%s", r->kind, r->kind[0] && r->name[0] ? " " : "", r->name);
	printable_copy(line, line, sizeof line);
	line[line_width_fit(line, COLUMNS)] = '\0';
	fprintf(out, "%s\n", line);
}

static void put_unknown(const struct census_growth *g, FILE *out)
{
	for (uint32_t t = CENSUS_TABLE_HOLDERS; t <= CENSUS_TABLE_LOST; t++)
		if (is_known(g->old, t) != is_known(g->new, t))
			fprintf(out, "\n%s: not known in the %s file.\n", titles[t],
			        is_known(g->old, t) ? "second" : "first");
}

void census_growth_text(const struct census_growth *g, size_t top, FILE *out)
{
	uint32_t table = 0;
	size_t shown = 0;

	put_head(g, out);
	for (size_t i = 0; i < g->count; i++) {
		const struct growth_row *r = &g->rows[i];
		if (r->new_bytes == r->old_bytes && r->new_count == r->old_count)
			continue;
		if (r->table != table) {
			table = r->table;
			shown = 0;
			fprintf(out, "\n%12s %14s %11s  %s\n", "change", "number", "now", titles[table]);
		}
		if (!top || shown++ < top)
			put_row(r, out);
	}
	put_unknown(g, out);
}

void census_growth_json(const struct census_growth *g, FILE *out)
{
	struct json *j = calloc(1, sizeof *j);
	uint32_t table = 0;

	if (!j)
		return;
	j->out = out;
	json_object(j, NULL);
	json_string(j, "command", g->new->header->command);
	json_unsigned(j, "pid", g->new->header->pid);
	json_bool(j, "same_process", same_process(g));
	json_number(j, "seconds", 60 * minutes_of(g));
	json_unsigned(j, "resident_before", g->old->header->resident);
	json_unsigned(j, "resident", g->new->header->resident);
	json_unsigned(j, "malloc_live_before", g->old->header->malloc_live);
	json_unsigned(j, "malloc_live", g->new->header->malloc_live);
	json_unsigned(j, "malloc_freed_before", g->old->header->malloc_freed);
	json_unsigned(j, "malloc_freed", g->new->header->malloc_freed);
	for (size_t i = 0; i < g->count; i++) {
		const struct growth_row *r = &g->rows[i];
		if (r->table != table) {
			if (table)
				json_array_end(j);
			table = r->table;
			json_array(j, names[table]);
		}
		json_object_line(j, NULL);
		json_string(j, "kind", r->kind);
		json_string(j, "name", r->name);
		json_unsigned(j, "count_before", r->old_count);
		json_unsigned(j, "count", r->new_count);
		json_unsigned(j, "bytes_before", r->old_bytes);
		json_unsigned(j, "bytes", r->new_bytes);
		json_object_end(j);
	}
	if (table)
		json_array_end(j);
	json_object_end(j);
	free(j);
}
