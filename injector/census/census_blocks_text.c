/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/plural.h"
#include "census/census_text.h"

static const struct size_figures *sorting;

static int compare_sizes(const void *a, const void *b)
{
	const struct size_figures *x = &sorting[*(const unsigned *)a], *y = &sorting[*(const unsigned *)b];

	return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

static void put_size(const struct printing *p, unsigned class)
{
	const struct heap_figures *f = &p->census->heap.figures;
	const struct census *before = p->view->before;
	const struct size_figures *s = &f->sizes[class];
	char bytes[SIZE_TEXT], kept[SIZE_TEXT], range[SIZE_RANGE], change[SIZE_TEXT + 1] = "";

	heap_size_class_format(class, range);
	if (before)
		size_format_change((double)s->bytes - (double)before->heap.figures.sizes[class].bytes, change);
	fprintf(p->out, "%11s %5.1f %% %11" PRIu64 "  %-22s %11s%s%s\n", size_format((double)s->bytes, bytes),
	        f->live_bytes ? 100 * (double)s->bytes / (double)f->live_bytes : 0, s->blocks, range,
	        s->kept ? size_format((double)s->kept, kept) : "", before ? " " : "", change);
}

/* Sizes of chunks less what malloc itself has of them. */
void census_put_sizes(const struct printing *p, unsigned rows)
{
	const struct heap_figures *f = &p->census->heap.figures;
	unsigned order[SIZE_CLASSES];

	if (!f->live_blocks)
		return;
	for (unsigned i = 0; i < SIZE_CLASSES; i++)
		order[i] = i;
	sorting = f->sizes;
	qsort(order, SIZE_CLASSES, sizeof *order, compare_sizes);
	fprintf(p->out, "\n%11s %7s %11s  %-22s %11s\n", "live", "", "blocks", "by size", "keeps free");
	for (unsigned i = 0; i < rows && f->sizes[order[i]].blocks; i++)
		put_size(p, order[i]);
}

static int compare_other(const void *a, const void *b)
{
	const struct other_size *x = a, *y = b;
	const uint64_t mine = x->blocks * x->bytes, others = y->blocks * y->bytes;

	return mine > others ? -1 : mine < others;
}

void census_put_other_sizes(const struct printing *p, unsigned rows)
{
	const struct other_heap *h = &p->census->heap.other;
	struct other_size sizes[OTHER_SIZES];
	char bytes[SIZE_TEXT], kept[SIZE_TEXT], range[SIZE_TEXT];

	if (!h->live_blocks)
		return;
	memcpy(sizes, h->sizes, sizeof sizes);
	qsort(sizes, h->size_count, sizeof *sizes, compare_other);
	fprintf(p->out, "\n%11s %7s %11s  by size, of %-11s %11s\n", "live", "", "blocks", h->name, "keeps free");
	for (unsigned i = 0; i < rows && i < h->size_count; i++) {
		const double all = (double)(sizes[i].blocks * sizes[i].bytes);
		fprintf(p->out, "%11s %5.1f %% %11" PRIu64 "  %-22s %11s\n", size_format(all, bytes),
		        100 * all / (double)h->live_bytes, sizes[i].blocks, size_format((double)sizes[i].bytes, range),
		        sizes[i].kept ? size_format((double)sizes[i].kept, kept) : "");
	}
}

static const struct type_figures *sorting_types;

static int compare_types(const void *a, const void *b)
{
	const struct type_figures *x = &sorting_types[*(const uint32_t *)a], *y = &sorting_types[*(const uint32_t *)b];

	return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

static void put_type(const struct printing *p, const struct block_types *t, uint32_t number,
                     const struct block_types *old, uint64_t all)
{
	const struct type_figures *f = &t->list[number];
	char bytes[SIZE_TEXT], change[SIZE_TEXT + 1] = "", line[512];
	uint32_t same;

	int n = snprintf(line, sizeof line, "%11s %5.1f %% %11" PRIu64, size_format((double)f->bytes, bytes),
	                 all ? 100 * (double)f->bytes / (double)all : 0, f->blocks);
	if (old) {
		const bool known = string_table_find(&old->names, t->names.list[number], &same);
		size_format_change((double)f->bytes - (known ? (double)old->list[same].bytes : 0), change);
		n += snprintf(line + n, sizeof line - (size_t)n, " %12s", change);
	}
	snprintf(line + n, sizeof line - (size_t)n, "  %-7s %s", type_source_name(f->source),
	         block_types_name(t, number));
	census_put_line(p, line);
}

static int put_types(const struct printing *p, const struct block_types *t, const struct block_types *old, uint64_t all,
                     uint32_t rows, struct err *e)
{
	uint32_t *order = calloc(t->names.count + 1, sizeof *order);

	if (!order)
		return err_set(e, ENOMEM, "no memory for the types of its blocks");
	for (uint32_t i = 0; i < t->names.count; i++)
		order[i] = i;
	sorting_types = t->list;
	qsort(order, t->names.count, sizeof *order, compare_types);
	for (uint32_t i = 0; i < rows && i < t->names.count && t->list[order[i]].blocks; i++)
		put_type(p, t, order[i], old, all);
	free(order);
	return 0;
}

int census_put_types(const struct printing *p, uint32_t rows, struct err *e)
{
	const struct block_types *t = &p->census->types, *old = p->view->before ? &p->view->before->types : NULL;

	if (t->bytes)
		fprintf(p->out, "\n%11s %7s %11s%s  by type\n", "live", "", "blocks", old ? "       change" : "");
	int rc = put_types(p, t, old, t->bytes, rows, e);
	if (t->full)
		fprintf(p->out, "There are more types than are told apart.\n");
	return rc;
}

static void put_not_cloned(const struct printing *p)
{
	const struct census_lost *lost = &p->census->lost;
	char line[256];

	if (!lost->not_cloned[0])
		return;
	snprintf(line, sizeof line, "Not cloned: %s.", lost->not_cloned);
	census_put_sentence(p, line);
}

int census_put_lost(const struct printing *p, unsigned rows, struct err *e)
{
	const struct census_lost *lost = &p->census->lost;
	char bytes[SIZE_TEXT], line[256];

	if (!lost->wanted)
		return 0;
	if (!lost->known) {
		fputc('\n', p->out);
		snprintf(line, sizeof line, "No pointer to: not known, %s.", lost->why);
		census_put_sentence(p, line);
		put_not_cloned(p);
		return 0;
	}
	fprintf(p->out, "\nNo pointer to %s in %" PRIu64 " block%s, %.2f %% of live (%s, stopped %.0f ms)\n",
	        size_format((double)lost->figures.lost_bytes, bytes), lost->figures.lost_blocks,
	        plural(lost->figures.lost_blocks),
	        lost->figures.live_bytes ? 100 * (double)lost->figures.lost_bytes / (double)lost->figures.live_bytes
	                                 : 0,
	        lost->cloned ? "cloned" : "frozen", (double)lost->stopped_ns / 1e6);
	put_not_cloned(p);
	int rc = put_types(p, &lost->types, NULL, lost->figures.lost_bytes, rows, e);
	fputs("A pointer in the kernel, compressed or encrypted would not be seen.\n", p->out);
	return rc;
}
