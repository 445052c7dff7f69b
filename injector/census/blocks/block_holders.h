/* SPDX-License-Identifier: MIT */
/*
 * Who holds some blocks: the variable from which each was reached first; where that was from elsewhere, the first block
 * of a known type on the way there, and else the place from which it went: the stack of a thread, an object of CPython.
 */
#pragma once

#include "census/blocks/block_labels.h"
#include "census/pages/stack_owners.h"
#include "census/reach/reach.h"

#define BLOCK_HOLDERS_NONE "no pointer was found"

/* Of all labels, which are sorted, when all pointers were followed. Blocks that are none of malloc's stay without a
 * holder. -ENOMEM. */
int block_holders_find(struct block_labels *labels, struct reach *r, const struct stack_owners *stacks,
                       const struct target_memory *process, struct err *e) WARN_UNUSED;
