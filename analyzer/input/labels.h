/* SPDX-License-Identifier: MIT */
/*
 * What the blocks of a dump are that are live at its end, and who holds them, and the samples summed up by that. What
 * was not looked at is a class of its own, as is what was freed before the end, so that the classes are the total.
 */
#pragma once

#include "base/map.h"
#include "dump/dump_reader.h"
#include "input/classes.h"

enum label_kind { LABEL_TYPE, LABEL_HOLDER, LABEL_KINDS };

struct label {
	char *text;
	enum dump_type_source source; /* of a type */
	struct class_sum sum;
};

/* Of one kind: the first two are what was not looked at, and what was freed; names follow, by id. */
#define LABELS_BEFORE 2u
struct labels_of {
	struct label *list;
	size_t count;
};

/* What is known of them. */
struct labels_look {
	bool known;                    /* the types of some blocks are, at least; */
	bool cut;                      /* there was no time for all */
	bool holders;                  /* it is known who holds them; */
	char why[DUMP_BLOCK_NAME_MAX]; /* else why not, or "": nobody has looked for that */
};

struct labels {
	struct labels_of of[LABEL_KINDS];
	struct dump_block *blocks;
	size_t count;
	struct map block_of; /* address -> index */
	struct labels_look look;
};

/* -ENOMEM. Of a dump without them all is not looked at. labels_done afterwards; on failure, too. */
int labels_read(struct labels *labels, struct dump *dump) WARN_UNUSED;
/* Forgets all sums. */
void labels_clear(struct labels *labels);
/* Of a block with a live record, or of one that was freed. */
struct class_sum *labels_sum(const struct labels *labels, enum label_kind kind, uint64_t address, bool freed);
/* "vtable", "python", "content" or "". */
const char *label_source_name(enum dump_type_source source);
void labels_done(struct labels *labels);
