/* SPDX-License-Identifier: MIT */
#include "census/blocks/block_holders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "base/map.h"
#include "base/now.h"
#include "base/string_table.h"
#include "census/blocks/root_names.h"

#define HOLDERS_MAX 20000u
#define HEAD_WORDS 6u   /* of a block, that say what it is */
#define OPEN (1u << 31) /* of a holder: its root is no variable, so a block of a known type may take its place */
#define UNASKED UINT32_MAX

struct holding {
	struct block_labels *labels;
	struct reach *reach;
	struct root_names names;
	struct string_table holders;
	uint32_t *of_root; /* by the number of a root: its holder, maybe OPEN */
	uint32_t *held_by; /* by index in the queue: the same */
	uint32_t *below;   /* what children of a block are held by; UNASKED */
	uint32_t *ids;     /* by holder: of its name in labels; 0: it has none yet */
};

static int holder_of(struct holding *h, const char *name, uint32_t *number, struct err *e)
{
	if (h->holders.count >= HOLDERS_MAX && !string_table_find(&h->holders, name, number))
		name = "others";
	return string_table_add(&h->holders, name, number) ? err_set(e, ENOMEM, "no memory for who holds its blocks")
	                                                   : 0;
}

static int name_roots(struct holding *h, struct err *e)
{
	const struct reach *r = h->reach;
	struct root_name name = { .end = 0 };
	uint64_t start = 0;
	uint32_t number = 0;
	int rc = 0;

	for (size_t i = 0; i < r->root_count && rc == 0; i++) {
		if (!i || r->roots[i] < start || r->roots[i] >= name.end) {
			root_names_find(&h->names, i, &name);
			rc = holder_of(h, name.text, &number, e);
			number |= name.is_typed ? 0 : OPEN;
			start = r->roots[i];
		}
		h->of_root[i] = number;
	}
	return rc;
}

/* The type of a block and where it is reached from: "shop::Cache (from the stack of the first thread)". */
static int ask_type(struct holding *h, uint32_t index, uint32_t *holder, struct err *e)
{
	const struct reach *r = h->reach;
	const struct block b = block_space_block(&r->blocks, r->queue[index].number);
	const uint64_t bytes = b.end - b.start;
	uint64_t words[HEAD_WORDS];
	const size_t have = bytes < sizeof words ? (size_t)bytes / 8 * 8 : sizeof words;
	char type[TYPE_NAME], name[TYPE_NAME + DATA_SYMBOL_NAME + 16];

	*holder = h->held_by[index];
	if (now_ns(CLOCK_PROCESS_CPUTIME_ID) > r->give_up_cpu_ns ||
	    !census_memory_read(r->memory, b.start, words, have) ||
	    !root_names_of_object(&h->names, words, have / 8, type))
		return 0;
	snprintf(name, sizeof name, "%.90s (from %.60s)", type, h->holders.list[*holder & ~OPEN]);
	return holder_of(h, name, holder, e);
}

/* Parents come before their children. */
static int pass_on(struct holding *h, struct err *e)
{
	const struct reach *r = h->reach;
	int rc = 0;

	memset(h->below, 0xff, r->queued * sizeof *h->below);
	for (size_t i = 0; i < r->queued && rc == 0; i++) {
		const uint32_t parent = r->queue[i].parent;
		if (parent & REACHED_BY_ROOT) {
			h->held_by[i] = h->of_root[parent & ~REACHED_BY_ROOT];
			continue;
		}
		if (h->below[parent] == UNASKED && !(h->held_by[parent] & OPEN))
			h->below[parent] = h->held_by[parent];
		else if (h->below[parent] == UNASKED)
			rc = ask_type(h, parent, &h->below[parent], e);
		h->held_by[i] = h->below[parent];
	}
	return rc;
}

static uint32_t id_of(struct holding *h, uint32_t holder)
{
	uint32_t *id = &h->ids[holder];

	if (!*id)
		*id = block_labels_name(h->labels, 1, DUMP_TYPE_NONE, h->holders.list[holder]);
	return *id;
}

/* Its number among the blocks; false: no live block is there. */
static bool number_of(struct holding *h, uint64_t address, uint32_t *number)
{
	const struct block_part *p = block_space_part(&h->reach->blocks, address);
	struct block b;

	if (!p || p->gone || !block_space_next(p, address, &b) || b.start > address)
		return false;
	*number = b.number;
	return true;
}

static int give_holders(struct holding *h, struct err *e)
{
	struct block_labels *l = h->labels;
	struct map found = { 0 }; /* number of a block -> its holder + 1 */
	uint32_t number, none;
	int rc = holder_of(h, BLOCK_HOLDERS_NONE, &none, e);

	for (uint32_t i = 0; i < l->count && rc == 0; i++)
		if (number_of(h, l->list[i].address, &number) && map_put(&found, number, none))
			rc = err_set(e, ENOMEM, "no memory for who holds its blocks");
	for (size_t i = 0; i < h->reach->queued && rc == 0; i++)
		if (map_find(&found, h->reach->queue[i].number))
			rc = map_put(&found, h->reach->queue[i].number, h->held_by[i] & ~OPEN);
	h->ids = calloc(h->holders.count + 1ull, sizeof *h->ids);
	if (rc == 0 && !h->ids)
		rc = err_set(e, ENOMEM, "no memory for who holds its blocks");
	for (uint32_t i = 0; i < l->count && rc == 0; i++)
		if (number_of(h, l->list[i].address, &number))
			l->list[i].holder = id_of(h, *map_find(&found, number));
	map_done(&found);
	return rc;
}

int block_holders_find(struct block_labels *labels, struct reach *r, const struct stack_owners *stacks,
                       const struct target_memory *process, struct err *e)
{
	struct holding h = { .labels = labels, .reach = r };

	h.of_root = calloc(r->root_count + 1, sizeof *h.of_root);
	h.held_by = calloc(r->queued + 1, sizeof *h.held_by);
	h.below = calloc(r->queued + 1, sizeof *h.below);
	int rc = h.of_root && h.held_by && h.below ? 0 : err_set(e, ENOMEM, "no memory for who holds its blocks");
	root_names_open(&h.names, r, stacks, process);
	rc = rc ?: name_roots(&h, e);
	rc = rc ?: pass_on(&h, e);
	rc = rc ?: give_holders(&h, e);
	labels->holders_known = rc == 0;
	root_names_close(&h.names);
	string_table_done(&h.holders);
	free(h.of_root);
	free(h.held_by);
	free(h.below);
	free(h.ids);
	return rc;
}
