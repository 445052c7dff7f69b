/* SPDX-License-Identifier: MIT */
#include "census/blocks/block_labels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/now.h"
#include "census/blocks/type_finder.h"

#define CLOCK_EVERY 64u /* blocks */

struct block_labels *block_labels_new(void)
{
	struct block_labels *l =
		mmap(NULL, sizeof *l, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return l == MAP_FAILED ? NULL : l;
}

void block_labels_free(struct block_labels *l)
{
	if (l)
		munmap(l, sizeof *l);
}

bool block_labels_add(struct block_labels *l, uint64_t address, uint64_t bytes)
{
	if (l->count == BLOCK_LABELS_MAX) {
		l->cut = true;
		return false;
	}
	l->list[l->count++] = (struct block_label){ .address = address, .bytes = bytes };
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct block_label *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

void block_labels_sort(struct block_labels *l)
{
	qsort(l->list, l->count, sizeof *l->list, compare);
}

uint32_t block_labels_name(struct block_labels *l, unsigned kind, enum dump_type_source source, const char *name)
{
	char *at = l->text[kind] + l->used[kind];
	const size_t length = strnlen(name, DUMP_BLOCK_NAME_MAX - 1);

	if (l->used[kind] + 1 + length + 1 > BLOCK_LABELS_TEXT || l->names[kind] == DUMP_BLOCK_NAMES_MAX)
		return 0;
	*at = (char)('0' + (int)source);
	memcpy(at + 1, name, length);
	at[1 + length] = '\0';
	l->used[kind] += (uint32_t)length + 2;
	return ++l->names[kind];
}

struct typing {
	struct block_labels *labels;
	struct block_types types;
	struct type_finder finder;
	uint32_t *ids; /* of the names, by the number of the type */
	size_t id_count;
};

static int id_of(struct typing *t, uint32_t number, uint32_t *id, struct err *e)
{
	static const enum dump_type_source sources[TYPE_SOURCES] = {
		[TYPE_VTABLE] = DUMP_TYPE_VTABLE, [TYPE_PYTHON] = DUMP_TYPE_PYTHON, [TYPE_CONTENT] = DUMP_TYPE_CONTENT
	};

	if (number >= t->id_count) {
		const size_t count = 2 * (size_t)number + 64;
		uint32_t *more = reallocarray(t->ids, count, sizeof *more);
		if (!more)
			return err_set(e, ENOMEM, "no memory for the types of its blocks");
		memset(more + t->id_count, 0, (count - t->id_count) * sizeof *more);
		t->ids = more;
		t->id_count = count;
	}
	if (!t->ids[number])
		t->ids[number] = block_labels_name(t->labels, 0, sources[t->types.list[number].source],
		                                   block_types_name(&t->types, number));
	*id = t->ids[number];
	return 0;
}

/* Its first bytes, or those in its first page where the next one is not there. */
static int find_type(struct typing *t, struct block_label *block, struct err *e)
{
	struct census_memory *memory = t->finder.memory;
	uint8_t data[TYPE_LOOK_BYTES];
	const size_t left = CENSUS_PAGE - block->address % CENSUS_PAGE;
	size_t have = block->bytes < sizeof data ? (size_t)block->bytes : sizeof data;
	uint32_t number;

	if (!census_memory_read(memory, block->address, data, have)) {
		have = have < left ? have : left;
		if (!census_memory_read(memory, block->address, data, have))
			return 0;
	}
	int rc = type_finder_find(&t->finder, data, have, &number, e);
	rc = rc ?: id_of(t, number, &block->type, e);
	t->labels->looked_at += block->type != 0;
	return rc;
}

int block_labels_find_types(struct block_labels *l, const struct census_heap *heap, struct census_memory *memory,
                            uint64_t ns, struct err *e)
{
	const uint64_t until_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
	struct typing *t = calloc(1, sizeof *t);
	int rc;

	if (!t)
		return err_set(e, ENOMEM, "no memory for the types of its blocks");
	t->labels = l;
	rc = type_finder_open(&t->finder, &t->types, heap, memory, e);
	for (uint32_t i = 0; i < l->count && rc == 0; i++) {
		if (i % CLOCK_EVERY == 0 && now_ns(CLOCK_THREAD_CPUTIME_ID) >= until_ns) {
			l->cut = true;
			break;
		}
		rc = find_type(t, &l->list[i], e);
	}
	block_types_free(&t->types);
	free(t->ids);
	free(t);
	return rc;
}
