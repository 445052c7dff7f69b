/* SPDX-License-Identifier: MIT */
#include "census/census_file.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "base/grow.h"
#include "base/now.h"
#include "base/size.h"
#include "census/census_summary.h"
#include "census_format.h"
#include "files/output_file.h"

struct building {
	struct census_row *rows;
	size_t count;
	char *strings;
	size_t used, room;
};

static int add_string(struct building *b, const char *text, uint32_t *offset)
{
	const size_t bytes = strlen(text) + 1;

	if (bytes > b->room - b->used) {
		const size_t room = 2 * b->room + bytes + 4096;
		char *more = realloc(b->strings, room);
		if (!more)
			return -ENOMEM;
		b->strings = more;
		b->room = room;
	}
	memcpy(b->strings + b->used, text, bytes);
	*offset = (uint32_t)b->used;
	b->used += bytes;
	return 0;
}

/* More than a file may have is left out: 64 MiB hold a million rows. */
static int add_row(struct building *b, struct census_row row, const char *kind, const char *name, struct err *e)
{
	if (b->used + b->count * sizeof row + strlen(kind) + strlen(name) + 1024 > CENSUS_FILE_MAX)
		return 0;
	if (add_string(b, kind, &row.kind) || add_string(b, name, &row.name) || !grow_list(b->rows, b->count))
		return err_set(e, ENOMEM, "no memory for the file of its census");
	b->rows[b->count++] = row;
	return 0;
}

/* Arenas have no names of their own, and come and go: they are one row. */
static int add_regions(struct building *b, const struct census *c, struct err *e)
{
	struct census_row arenas = { .table = CENSUS_TABLE_REGIONS };
	int rc = 0;

	for (size_t i = 0; i < c->regions.count && rc == 0; i++) {
		const struct region *r = &c->regions.list[i];
		const struct census_row row = {
			.table = CENSUS_TABLE_REGIONS, .count = r->mappings, .bytes = r->resident, .more = r->swapped
		};
		if (r->kind == REGION_ARENA) {
			arenas.count++;
			arenas.bytes += row.bytes;
			arenas.more += row.more;
		} else if (r->resident || r->swapped) {
			rc = add_row(b, row, region_kind_name(r->kind), r->name, e);
		}
	}
	return rc < 0 || !arenas.count ? rc : add_row(b, arenas, region_kind_name(REGION_ARENA), "", e);
}

static int add_sizes(struct building *b, const struct census_heap *c, struct err *e)
{
	const struct heap_figures *f = &c->figures;
	char name[SIZE_RANGE];
	int rc = 0;

	for (unsigned i = 0; i < SIZE_CLASSES && rc == 0; i++) {
		const struct size_figures *s = &f->sizes[i];
		const struct census_row row = { CENSUS_TABLE_SIZES, 0, 0, 0, s->blocks, s->bytes, s->kept };
		if (s->blocks)
			rc = add_row(b, row, "", heap_size_class_format(i, name), e);
	}
	for (unsigned i = 0; i < c->other.size_count && rc == 0; i++) {
		const struct other_size *s = &c->other.sizes[i];
		char size[SIZE_TEXT];
		snprintf(name, sizeof name, "%s of %s", size_format((double)s->bytes, size), c->other.name);
		rc = add_row(
			b, (struct census_row){ CENSUS_TABLE_SIZES, 0, 0, 0, s->blocks, s->blocks * s->bytes, s->kept },
			"", name, e);
	}
	return rc;
}

static int add_types(struct building *b, uint32_t table, const struct block_types *t, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < t->names.count && rc == 0; i++) {
		const struct census_row row = { table, 0, 0, 0, t->list[i].blocks, t->list[i].bytes, 0 };
		if (t->list[i].blocks)
			rc = add_row(b, row, type_source_name(t->list[i].source), block_types_name(t, i), e);
	}
	return rc;
}

/* One row without a name says that it is known, also where nothing is lost. */
static int add_lost(struct building *b, const struct census_lost *lost, struct err *e)
{
	int rc = add_row(b, (struct census_row){ .table = CENSUS_TABLE_LOST }, "", "", e);

	return rc == 0 ? add_types(b, CENSUS_TABLE_LOST, &lost->types, e) : rc;
}

static int add_holders(struct building *b, const struct holders *h, struct err *e)
{
	int rc = 0;

	for (uint32_t i = 0; i < h->names.count && rc == 0; i++) {
		const struct census_row row = { .table = CENSUS_TABLE_HOLDERS,
			                        .count = h->list[i].blocks,
			                        .bytes = h->list[i].bytes };
		rc = add_row(b, row, "", h->names.list[i], e);
	}
	return rc;
}

static int write_all(const struct building *b, const struct census *c, const char *path, struct err *e)
{
	const size_t rows_bytes = b->count * sizeof *b->rows;
	struct census_header h = {
		.version = CENSUS_VERSION,
		.header_bytes = sizeof h,
		.file_bytes = sizeof h + rows_bytes + b->used,
		.realtime_ns = now_ns(CLOCK_REALTIME),
		.start_ticks = c->target->start_ticks,
		.pid = (uint32_t)c->target->pid,
		.row_count = (uint32_t)b->count,
		.resident = c->resident,
		.swapped = c->swapped,
		.malloc_live = c->heap.figures.live + c->heap.other.live,
		.malloc_freed = census_freed(c) + c->heap.other.freed,
		.malloc_trim = c->heap.figures.trim,
		.rows_offset = sizeof h,
		.strings_offset = sizeof h + rows_bytes,
		.strings_bytes = b->used,
	};
	struct output_file file;

	memcpy(h.magic, CENSUS_MAGIC, sizeof h.magic);
	memcpy(h.command, c->target->comm, sizeof h.command - 1);
	int rc = output_file_open(&file, path, OUTPUT_OF_SESSION, e);
	if (rc < 0)
		return rc;
	fwrite(&h, sizeof h, 1, file.stream);
	fwrite(b->rows, sizeof *b->rows, b->count, file.stream);
	fwrite(b->strings, 1, b->used, file.stream);
	rc = output_file_finish(&file, e); /* knows whether all was written */
	output_file_done(&file);
	return rc;
}

int census_file_write(const struct census *c, const char *path, struct err *e)
{
	struct building b = { 0 };

	int rc = add_regions(&b, c, e);
	rc = rc ?: add_sizes(&b, &c->heap, e);
	rc = rc ?: add_types(&b, CENSUS_TABLE_TYPES, &c->types, e);
	if (rc == 0 && c->holders.known)
		rc = add_holders(&b, &c->holders, e);
	if (rc == 0 && c->lost.known)
		rc = add_lost(&b, &c->lost, e);
	rc = rc ?: write_all(&b, c, path, e);
	free(b.rows);
	free(b.strings);
	return rc;
}
