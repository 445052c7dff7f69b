/* SPDX-License-Identifier: MIT */
#include "recording/live/live_labels.h"

#include <string.h>

#include "recording/live/live_records.h"

void live_labels_collect(struct block_labels *labels, const struct dump_writer *w)
{
	for (struct live_walk x = { .writer = w }; live_walk_next(&x);) {
		const struct dump_stack *stack = dump_writer_stack(w, x.record.stack);
		if (stack && stack->flags & DUMP_STACK_FILE)
			continue;
		if (!block_labels_add(labels, x.record.address, x.record.size))
			break;
	}
	block_labels_sort(labels);
}

static int record_names(const struct block_labels *labels, unsigned kind, struct dump_writer *w, struct err *e)
{
	const char *at = labels->text[kind];
	int rc = 0;

	for (uint32_t i = 0; i < labels->names[kind] && rc == 0; i++, at += strlen(at) + 1) {
		const struct dump_block_name name = { .kind = kind ? DUMP_BLOCK_HOLDER : DUMP_BLOCK_TYPE,
			                              .source = (uint16_t)(at[0] - '0'),
			                              .id = i + 1 };
		rc = dump_writer_block_name(w, &name, at + 1, e);
	}
	return rc;
}

/* Blocks of which nothing is known need no room. */
static int record_blocks(const struct block_labels *labels, struct dump_writer *w, struct err *e)
{
	struct dump_block blocks[DUMP_BLOCK_LIST_MAX];
	uint32_t count = 0;
	int rc = 0;

	for (uint32_t i = 0; i < labels->count && rc == 0; i++) {
		const struct block_label *l = &labels->list[i];
		if (l->type || l->holder)
			blocks[count++] = (struct dump_block){ l->address, l->type, l->holder };
		if (count && (count == DUMP_BLOCK_LIST_MAX || i + 1 == labels->count)) {
			rc = dump_writer_blocks(w, blocks, count, e);
			count = 0;
		}
	}
	return rc;
}

int live_labels_record(const struct block_labels *labels, struct dump_writer *w, struct err *e)
{
	const struct dump_block_look look = { .kind = DUMP_BLOCK_LOOK,
		                              .flags = (uint16_t)((labels->cut ? DUMP_BLOCK_TYPES_CUT : 0) |
		                                                  (labels->holders_known ? DUMP_BLOCK_HOLDERS : 0)),
		                              .looked_at = labels->looked_at };
	int rc = 0;

	if (!labels->count)
		return 0;
	for (unsigned kind = 0; kind < 2 && rc == 0; kind++)
		rc = record_names(labels, kind, w, e);
	rc = rc ?: record_blocks(labels, w, e);
	return rc ?: dump_writer_block_look(w, &look, labels->why, e);
}
